// @vitest-environment jsdom

import { render } from "preact";
import { expect, test } from "vitest";
import { Figures } from "../../src/spec/figures";
import { FigureList, type FigureListProps, type FigureName, meanings } from "../../src/spec/told";

const ALL: readonly FigureName[] = ["ttft", "tpot", "rate", "per-step", "acceptance", "cache-hit", "tokens"];

function drawn(props: FigureListProps): HTMLElement {
  const root = document.createElement("div");
  render(<FigureList {...props} />, root);
  return root;
}

const texts = (root: HTMLElement, kind: string) =>
  [...root.querySelectorAll(kind)].map(({ textContent }) => textContent);

function running(): Figures {
  const figures = new Figures(0);
  figures.delta(100, { drafted: 0, accepted: 0, emitted: 1, input_tokens: 1200, cached_tokens: 900 });
  figures.delta(300, { drafted: 2000, accepted: 1000, emitted: 2001 });
  return figures;
}

test("a running reply has all its figures, its cache hit among them", () => {
  expect(texts(drawn({ figures: running(), which: ALL }), "dd")).toEqual([
    "100 ms",
    "0.1 ms",
    "10005",
    "2.00",
    "50 % of 2,000",
    "75 % of 1,200",
    "2,002",
  ]);
});

test("no reply, and one that has only begun, have none", () => {
  for (const figures of [null, new Figures(0)]) {
    expect(texts(drawn({ figures, which: ALL }), "dd")).toEqual(ALL.map(() => "–"));
  }
});

test("what a name stands for is said without a title, beside it or apart", () => {
  const which = ["ttft", "tokens"] as const;
  const root = drawn({ figures: null, which });
  expect(texts(root, "dt")).toEqual(["TTFT, time to first token", "Tokens"]);
  expect(root.querySelector("[title]")).toBeNull();
  expect(texts(drawn({ figures: null, which, brief: true }), "dt")).toEqual(["TTFT", "Tokens"]);
  expect(meanings(which)).toBe("TTFT: time to first token.");
});

test("where there is little room a share is a share alone", () => {
  expect(texts(drawn({ figures: running(), which: ["acceptance"], brief: true }), "dd")).toEqual(["50 %"]);
});

test("a view may find its values by id, and name a figure for what it is there", () => {
  const root = drawn({ figures: null, which: ["ttft", "tpot"], ids: true, names: { ttft: "TTFT, prompt warm" } });
  expect([...root.querySelectorAll("dd")].map(({ id }) => id)).toEqual(["ttft", "tpot"]);
  expect(texts(root, "dt")[0]).toContain("TTFT, prompt warm");
});
