import { describe, expect, it } from "vitest";
import { Cursor } from "../../src/spec/cursor";
import { Trace } from "../../src/spec/trace";
import type { Step } from "../../src/wire/events";
import { demo } from "./demo";

function started(steps: number) {
  const reply = demo({ nodes: 3 });
  const trace = new Trace(0);
  const more = (count: number) => {
    for (let step = 0; step < count; step += 1) {
      const { text, spec } = reply.next().value;
      trace.push(text, spec, 0);
    }
  };
  more(steps);
  return { trace, more, cursor: new Cursor(trace) };
}

describe("Cursor", () => {
  it("follows the newest step until one is held", () => {
    const { trace, more, cursor } = started(3);
    expect(cursor.shown).toEqual({ index: 2, step: trace.steps[2] });
    more(1);
    expect(cursor.shown?.index).toBe(3);
    cursor.pause();
    more(1);
    expect(cursor.shown?.index).toBe(3);
    cursor.follow();
    expect(cursor.shown?.index).toBe(4);
  });

  it("goes back and forth and stays within the reply", () => {
    const { cursor } = started(5);
    cursor.move(-2);
    expect(cursor.held.value?.index).toBe(2);
    cursor.move(-9);
    expect(cursor.shown?.index).toBe(0);
    cursor.move(99);
    expect(cursor.shown?.index).toBe(4);
  });

  it("goes on showing a step that the trace has dropped, and moves to the nearest that is kept", () => {
    const { trace, more, cursor } = started(2);
    cursor.pause();
    const held = cursor.shown;
    more(700);
    expect(trace.step(1)).toBeUndefined();
    expect(cursor.shown).toBe(held);
    cursor.move(1);
    expect(cursor.shown?.index).toBe(trace.dropped);
  });

  it("shows nothing before the first step", () => {
    const { cursor } = started(0);
    cursor.pause();
    cursor.move(1);
    cursor.oldest();
    expect(cursor.shown).toBeNull();
    cursor.best();
    expect(cursor.shown).toBeNull();
  });

  it("finds the step that brought the most, with a tree where there is one, among those that are kept", () => {
    const { cursor, trace } = started(700);
    cursor.best();
    const most = Math.max(...trace.steps.map(({ emitted }) => emitted));
    expect(cursor.shown?.index).toBe(trace.dropped + trace.steps.findIndex(({ emitted }) => emitted === most));
    const untold = { ...(trace.steps.at(-1) as Step), emitted: most + 1, tree: null };
    for (const step of [untold, { ...untold, tree: trace.steps.at(-1)?.tree ?? null }]) {
      trace.push("", { drafted: 0, accepted: 0, emitted: most + 1, steps: [step] }, 1);
    }
    cursor.best();
    expect(cursor.shown?.index).toBe(trace.dropped + trace.steps.length - 1);
  });
});
