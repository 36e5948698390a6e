import { expect, it } from "vitest";
import { Tally } from "../../src/spec/tally";
import type { Step, StepTree } from "../../src/wire/events";

const TREE: StepTree = {
  texts: ["The", " cat", " dog", " sat", " ran", " up"],
  parents: [-1, 0, 0, 1, 2, 3],
  sources: ["", "suffix+draft", "medusa", "suffix", "draft", "suffix"],
  estimates: [1, 0.9, 0.1, 0.8, 0.2, 0.5],
  chances: [1, 0.7, 0.2, 0.6, 0.1, 0.4],
  path: [0, 1, 3],
};
const STEP: Step = {
  ms: 5,
  nodes: 6,
  drafted: 5,
  accepted: 2,
  emitted: 3,
  reason: "best",
  tokens: [
    { text: " cat", source: "suffix+draft" },
    { text: " sat", source: "suffix" },
    { text: " down", source: "" },
  ],
  tree: TREE,
};

it("counts a guess for each drafter who had it, and judges only those whose parent was right", () => {
  const tally = new Tally();
  tally.add([STEP], 3);
  expect(tally.drafters.get("suffix")).toMatchObject({ guesses: 3, accepted: 2, judged: 3 });
  expect(tally.drafters.get("suffix")?.estimates).toBeCloseTo(0.9 + 0.8 + 0.5);
  expect(tally.drafters.get("suffix")?.chances).toBeCloseTo(0.7 + 0.6 + 0.4);
  expect(tally.drafters.get("draft")).toMatchObject({ guesses: 2, accepted: 1, judged: 1 });
  expect(tally.drafters.get("medusa")).toMatchObject({ guesses: 1, accepted: 0, judged: 1 });
});

it("counts by depth the guesses, the steps that went so deep and those that were right there", () => {
  const tally = new Tally();
  tally.add([STEP, { ...STEP, tree: { ...TREE, path: [0] } }, { ...STEP, tree: null }], 9);
  expect(tally.depths).toEqual([
    { guesses: 4, steps: 2, accepted: 1 },
    { guesses: 4, steps: 2, accepted: 1 },
    { guesses: 2, steps: 2, accepted: 0 },
  ]);
  expect([tally.steps, tally.trees]).toEqual([3, 2]);
});

it("counts tokens by source, and those of deltas without steps as unknown", () => {
  const tally = new Tally();
  tally.add([STEP], 3);
  tally.add([], 2);
  expect([...tally.tokens]).toEqual([
    ["suffix+draft", 1],
    ["suffix", 1],
    ["", 1],
    [null, 2],
  ]);
});

it("does not grow with the names a server makes up", () => {
  const tally = new Tally();
  for (let name = 0; name < 500; name += 1) {
    const sources = TREE.sources.map((_, node) => (node ? `drafter${name}` : ""));
    tally.add([{ ...STEP, tokens: [{ text: "x", source: `drafter${name}` }], tree: { ...TREE, sources } }], 1);
  }
  expect(tally.drafters.size).toBeLessThan(20);
  expect(tally.tokens.size).toBeLessThan(20);
  expect([...tally.drafters.values()].reduce((sum, { guesses }) => sum + guesses, 0)).toBe(2500);
});
