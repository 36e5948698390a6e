import { describe, expect, it } from "vitest";
import { reasonOf } from "../../src/spec/reasons";
import { cells, clipped, probability, reasonSentence, stepSentence, treeSentence, visible } from "../../src/spec/words";
import type { Step } from "../../src/wire/events";

const STEP: Step = {
  ms: 12.34,
  nodes: 9,
  drafted: 8,
  accepted: 1,
  emitted: 2,
  reason: "budget",
  tokens: [
    { text: " the", source: "suffix+recurrent" },
    { text: "\n", source: "" },
  ],
  tree: null,
};

describe("words", () => {
  it("tells a step, its reason and its tree", () => {
    expect(stepSentence(STEP, 1213)).toBe("Step 1,214: 1 of 8 guesses accepted, 2 tokens in 12.3 ms.");
    expect(stepSentence({ ...STEP, drafted: 0, emitted: 1 }, 0)).toBe(
      "Step 1: no guess was checked, 1 token in 12.3 ms.",
    );
    expect(reasonSentence(STEP)).toBe("Reason: budget; no more guesses are allowed by the request or the server.");
    expect(reasonSentence({ ...STEP, reason: null })).toContain("the server does not say");
    expect(treeSentence(STEP)).toBe("9 nodes, 1 accepted: ␣the (suffix and recurrent), then ⏎ (the model itself).");
  });

  it("tells that the reply ended with a guess", () => {
    const tree = { texts: ["?", "<|im_end|>"], parents: [-1, 0], sources: ["", "suffix"], path: [0] };
    const tokens = [{ text: "<|im_end|>", source: "" }];
    const step = { ...STEP, nodes: 2, drafted: 1, accepted: 0, emitted: 1, tokens };
    const met = { ...step, tree: { ...tree, estimates: [1, 0.5], chances: [1, 0.5] } };
    expect(stepSentence(met, 0)).toBe(
      "Step 1: 0 of 1 guess accepted, 1 token in 12.3 ms; the token the reply ended with was guessed too.",
    );
    expect(treeSentence(met)).toContain("; the last one was guessed too, and the reply ended with it.");
    expect(stepSentence(step, 0)).not.toContain("ended");
    expect(treeSentence(step)).not.toContain("ended");
  });

  it("makes blanks visible and takes shapeless and order-changing characters out", () => {
    expect(visible(" a\n\tb\u202ec\u0007")).toBe("␣a⏎⇥b·c·");
    expect(visible("👩‍🚀")).toBe("👩‍🚀");
    expect(clipped("0123456789ab")).toBe("0123456789ab");
    expect(clipped("0123456789abc")).toBe("0123456789a…");
    expect(clipped("😀".repeat(20))).toBe(`${"😀".repeat(5)}…`);
    expect(clipped("日本語の文字列")).toBe("日本語の文…");
    expect([cells("ab"), cells("日本"), cells("a😀")]).toEqual([2, 4, 3]);
  });

  it("draws a bounded part of texts that are no token's", () => {
    const long = "\u202e".repeat(50_000);
    expect(visible(long)).toBe(`${"·".repeat(79)}…`);
    expect(visible("x".repeat(80))).toBe("x".repeat(80));
    const tokens = Array.from({ length: 256 }, () => ({ text: long, source: "" }));
    expect(treeSentence({ ...STEP, tokens }).length).toBeLessThan(3000);
    expect(treeSentence({ ...STEP, tokens })).toContain(", then 232 more.");
  });

  it("writes probabilities short", () => {
    expect([0, 0.005, 0.824, 0.994, 0.996, 1].map(probability)).toEqual([".00", ".01", ".82", ".99", "1.0", "1.0"]);
  });
});

it("every reason of the planner has a letter and a sentence of its own", () => {
  const names = ["best", "budget", "not worth it", "no guesses", "no room", "off", "prefill", "something new"];
  expect(new Set(names.map((name) => reasonOf(name).letter)).size).toBe(names.length);
  expect(new Set(names.map((name) => reasonOf(name).sentence)).size).toBe(names.length);
});
