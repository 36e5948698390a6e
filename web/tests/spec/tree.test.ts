import { describe, expect, it } from "vitest";
import { fatesOf, guessesFor, isMet, isSound, nodeOf, ownToken, type StepToken, soundStep } from "../../src/spec/tree";
import type { Step, StepTree } from "../../src/wire/events";
import { type DemoDelta, demoDeltas } from "./demo";

const TREE: StepTree = {
  texts: ["The", " cat", " dog", " sat", " ran"],
  parents: [-1, 0, 0, 1, 1],
  sources: ["", "suffix", "medusa", "suffix", "draft"],
  estimates: [1, 0.9, 0.1, 0.8, 0.2],
  chances: [1, 0.7, 0.2, 0.6, 0.1],
  path: [0, 1, 3],
};

describe("ownToken", () => {
  it("is the last one, or none where the reply was cut before it", () => {
    const cut = { accepted: 2, tokens: [{ text: " cat" }, { text: " sat" }] } as Step;
    expect(ownToken(cut)).toBeNull();
    expect(ownToken({ ...cut, accepted: 1 })?.text).toBe(" sat");
  });
});

describe("guessesFor", () => {
  const step = { accepted: 2, tokens: [{ text: " cat" }, { text: " sat" }, { text: "." }] } as Step;
  const texts = (node: number | null) => guessesFor(step, TREE, node).map(({ text, fate }) => [text, fate]);

  it("lists what was guessed for a token's place, right and wrong", () => {
    expect(texts(1)).toEqual([
      [" cat", "accepted"],
      [" dog", "rejected"],
    ]);
    expect(guessesFor(step, TREE, 3)[1]).toEqual({
      node: 4,
      text: " ran",
      source: "draft",
      estimate: 0.2,
      chance: 0.1,
      fate: "rejected",
    });
  });

  it("lists what was guessed, wrongly, where the model's own token came", () => {
    expect(texts(null)).toEqual([]);
    expect(guessesFor(step, { ...TREE, path: [0, 1] }, null).map(({ text }) => text)).toEqual([" sat", " ran"]);
  });
});

describe("fatesOf", () => {
  const tree: StepTree = { ...TREE, path: [0, 1] };
  const ending = (text: string) =>
    ({
      accepted: 1,
      tokens: [
        { text: " cat", source: "suffix" },
        { text, source: "" },
      ],
      tree,
    }) as Step;

  it("tells the guess that the reply ended with from the wrong ones", () => {
    expect(fatesOf(ending(" ran"), tree)).toEqual(["pending", "accepted", "rejected", "rejected", "met"]);
    expect(isMet(ending(" ran"))).toBe(true);
  });

  it("takes only guesses for that very place, by the model's own token alone", () => {
    expect(fatesOf(ending(" dog"), tree)).toEqual(["pending", "accepted", "rejected", "rejected", "rejected"]);
    expect(isMet(ending(" dog"))).toBe(false);
    expect(isMet({ ...ending(" ran"), tree: null })).toBe(false);
    const cut = { accepted: 1, tokens: [{ text: " cat", source: "suffix" }], tree } as Step;
    expect(isMet(cut)).toBe(false);
  });

  it("calls nothing wrong behind a guess that was not reached", () => {
    const step = { accepted: 0, tokens: [{ text: "The", source: "" }] } as Step;
    expect(fatesOf(step, { ...TREE, path: [0] })).toEqual([
      "pending",
      "rejected",
      "rejected",
      "unreached",
      "unreached",
    ]);
  });

  it("meets none in a reply that goes on", () => {
    for (const { spec } of demoDeltas(100)) expect(isMet(spec.steps[0])).toBe(false);
  });
});

describe("isSound", () => {
  it("takes every tree of the demo", () => {
    for (const { spec } of demoDeltas(50)) expect(isSound(spec.steps[0].tree)).toBe(true);
  });

  it.each<[string, Partial<StepTree>]>([
    ["no node", { texts: [], parents: [], sources: [], estimates: [], chances: [], path: [] }],
    ["a parent behind its child", { parents: [-1, 2, 0, 1, 1] }],
    ["a node that is its own parent", { parents: [-1, 0, 2, 1, 1] }],
    ["two roots", { parents: [-1, -1, 0, 1, 1] }],
    ["lists of different lengths", { chances: [1] }],
    ["a path that jumps", { path: [0, 3] }],
    ["a path without the root", { path: [1, 3] }],
    ["no path", { path: [] }],
  ])("refuses %s", (_, change) => {
    const step = { tree: { ...TREE, ...change }, tokens: [] as StepToken[] } as Step;
    expect(soundStep(step).tree).toBeNull();
    const sound = { ...step, tree: TREE };
    expect(soundStep(sound)).toBe(sound);
  });

  it("has texts that are no token's cut, alike in the tree and among the tokens", () => {
    const long = "x".repeat(50_000);
    const step = { tree: { ...TREE, texts: [...TREE.texts.slice(0, 4), long] }, tokens: [{ text: long, source: "" }] };
    const { tree, tokens } = soundStep(step as Step);
    expect(tree?.texts).toEqual([...TREE.texts.slice(0, 4), "x".repeat(1000)]);
    expect(tokens).toEqual([{ text: "x".repeat(1000), source: "" }]);
  });

  it("refuses more nodes than a page should lay out", () => {
    const [{ spec }] = demoDeltas(1, { nodes: 300 }) as [DemoDelta];
    expect(spec.steps[0].tree.texts).toHaveLength(300);
    expect(isSound(spec.steps[0].tree)).toBe(false);
  });
});

it("nodeOf names the node of a step's token, and none for the model's own", () => {
  const step = { tree: TREE } as Step;
  expect([0, 1, 2].map((place) => nodeOf(step, place))).toEqual([1, 3, null]);
  expect(nodeOf({ tree: null } as Step, 0)).toBeNull();
});
