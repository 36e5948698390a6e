import { describe, expect, it } from "vitest";
import { Trace } from "../../src/spec/trace";
import type { Spec, Step } from "../../src/wire/events";
import { type DemoDelta, demo, demoDeltas } from "./demo";

const bare = (emitted: number): Spec => ({ drafted: 0, accepted: 0, emitted });

function traced(deltas: Iterable<{ text: string; spec: Spec }>): Trace {
  const trace = new Trace(0);
  let now = 100;
  for (const { text, spec } of deltas) {
    now += 10;
    trace.push(text, spec, now);
  }
  return trace;
}

describe("Trace", () => {
  it("has the text exactly, each part tied to the token, step and node it came from", () => {
    const deltas = demoDeltas(40, { nodes: 9 });
    const trace = traced(deltas);
    expect(trace.tokens.map(({ text }) => text).join("")).toBe(deltas.map(({ text }) => text).join(""));
    expect(trace.tokens.length).toBe(trace.figures.tokens);
    for (const { text, source, step, node } of trace.tokens) {
      const { tree, tokens } = trace.step(step ?? -1) as Step;
      const guessed = { text: tree?.texts[node ?? -1], source: tree?.sources[node ?? -1] };
      expect(node === null ? tokens[tokens.length - 1] : guessed).toEqual({ text, source });
    }
  });

  it("keeps the newest of a long reply, counts what went before and sums up everything", () => {
    const reply = demo({ nodes: 4 });
    const trace = new Trace(0);
    let emitted = 0;
    let steps = 0;
    while (emitted < 20_000) {
      const { text, spec } = reply.next().value;
      trace.push(text, spec, steps);
      emitted += spec.emitted;
      steps += 1;
    }
    expect(trace.steps.length).toBeGreaterThanOrEqual(512);
    expect(trace.steps.length).toBeLessThan(600);
    expect(trace.dropped + trace.steps.length).toBe(steps);
    expect(trace.tokens.length).toBeGreaterThanOrEqual(2000);
    expect(trace.tokens.length).toBeLessThan(2300);
    expect(trace.droppedTokens + trace.tokens.length).toBe(emitted);
    expect(trace.tally.steps).toBe(steps);
    expect([...trace.tally.tokens.values()].reduce((sum, count) => sum + count)).toBe(emitted);
    expect(trace.step(trace.dropped - 1)).toBeUndefined();
    expect(trace.step(steps - 1)).toBe(trace.steps[trace.steps.length - 1]);
    expect(trace.token(emitted - 1)).toBe(trace.tokens[trace.tokens.length - 1]);
    expect(trace.tokens.at(-1)?.step).toBe(steps - 1);
  });

  it("has the steps of thoughts, whose tokens are no part of the text", () => {
    const deltas = demoDeltas(60);
    const trace = new Trace(0);
    for (const [i, { text, spec }] of deltas.entries()) {
      if (i < 50) trace.think(spec, i);
      else trace.push(text, spec, i);
    }
    expect(trace.tally.steps).toBe(60);
    expect(trace.figures.tokens).toBe(deltas.reduce((sum, { spec }) => sum + spec.emitted, 0));
    expect(trace.tokens.map(({ text }) => text).join("")).toBe(
      deltas
        .slice(50)
        .map(({ text }) => text)
        .join(""),
    );
    expect(trace.tokens[0]?.step).toBe(50);
    expect(trace.tokens.at(-1)?.step).toBe(59);
  });

  it("says that the origin is unknown where the server tells none", () => {
    const trace = traced([{ text: "Hello", spec: bare(2) }]);
    trace.push(" there", undefined, 200);
    expect(trace.tokens).toEqual([
      { text: "Hello", source: null, step: null, node: null },
      { text: " there", source: null, step: null, node: null },
    ]);
    expect([...trace.tally.tokens]).toEqual([[null, 2]]);
    expect(trace.steps).toEqual([]);
  });

  it("takes a step without its tree, and a tree that is none for a step without", () => {
    const [first, second] = demoDeltas(2, { nodes: 6 }) as [DemoDelta, DemoDelta];
    const [{ tree, ...step }] = second.spec.steps;
    const broken = { ...step, tree: { ...tree, parents: tree.parents.map(() => 5) } };
    const spec = { ...first.spec, steps: [{ ...first.spec.steps[0], tree: null }, broken] };
    const trace = traced([{ text: first.text, spec }]);
    expect(trace.steps.map(({ tree }) => tree)).toEqual([null, null]);
    expect(trace.tokens.every(({ step, node }) => step === 0 && node === null)).toBe(true);
    expect([trace.tally.steps, trace.tally.trees]).toEqual([2, 0]);
  });

  it("knows that speculation is off once every step says so", () => {
    const off: Step = { ms: 5, nodes: 1, drafted: 0, accepted: 0, emitted: 1, reason: "off", tokens: [], tree: null };
    const trace = traced([]);
    trace.push("a", { ...bare(1), steps: [{ ...off, reason: "prefill" }] }, 0);
    expect(trace.off).toBe(false);
    trace.push("b", { ...bare(1), steps: [off] }, 1);
    expect(trace.off).toBe(true);
    trace.push("c", { ...bare(1), steps: [{ ...off, reason: "best" }] }, 2);
    expect(trace.off).toBe(false);
  });

  it("has the figures of the reply, live and at its end", () => {
    const trace = traced(demoDeltas(3));
    expect(trace.figures.ttft).toBe(110);
    expect(trace.figures.tpot).toBeCloseTo(20 / (trace.figures.tokens - 1));
    trace.finish({ output_tokens: 50, input_tokens: 10, input_token_details: { cached_tokens: 5 } }, 900);
    expect([trace.figures.tokens, trace.figures.cacheHit]).toEqual([50, 0.5]);
  });
});
