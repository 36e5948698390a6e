// @vitest-environment jsdom

import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { nodeUnder, Pointed } from "../../src/spec/pointed";
import type { Step } from "../../src/wire/events";

const STEP: Step = {
  ...{ ms: 1, nodes: 3, drafted: 2, accepted: 1, emitted: 2, reason: "best" },
  tokens: [
    { text: " cat", source: "suffix" },
    { text: " sat", source: "" },
  ],
  tree: {
    ...{ texts: ["The", " cat", " dog"], parents: [-1, 0, 0], sources: ["", "suffix", "suffix+draft"], path: [0, 1] },
    ...{ estimates: [1, 0.9, 0.07], chances: [1, 0.8, 0.05] },
  },
};

it("finds the node that a part of the drawing belongs to", () => {
  document.body.innerHTML = `<svg><g data-node="own"><text>Hi</text></g><path></path></svg>`;
  expect(["text", "g", "path"].map((name) => nodeUnder(document.querySelector(name)))).toEqual(["own", "own", null]);
  expect(nodeUnder(null)).toBeNull();
});

it("tells the guess that is pointed at, with its figures, and how to point while there is none", () => {
  const root = document.createElement("div");
  const over = signal<string | null>(null);
  act(() => render(<Pointed over={over} shown={{ index: 0, step: STEP }} />, root));
  const told = [null, "0", "1", "2", "own", "7"].map((node) => {
    act(() => {
      over.value = node;
    });
    return root.textContent;
  });
  const [hint] = told;
  expect(hint).toContain("Point at a guess");
  expect(told.slice(1)).toEqual([
    "The: the pending token, which the guesses follow.",
    "␣cat by suffix: estimate .90, chance .80; accepted.",
    "␣dog by suffix and draft: estimate .07, chance .05; rejected.",
    "␣sat: the model’s own token.",
    hint,
  ]);
});
