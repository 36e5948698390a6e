// @vitest-environment jsdom

import { describe, expect, it } from "vitest";
import { Inscription } from "../../src/race/inscription";
import type { Mark } from "../../src/race/lane";

const marks = (...parts: [string, number][]): Mark[] => parts.map(([text, tokens], i) => ({ at: i, text, tokens }));

function drawn(root: HTMLElement): [text: string, classes: string][] {
  return [...root.children].map((part) => [part.textContent ?? "", part.className]);
}

describe("Inscription", () => {
  it("keeps room for what has not come, and tells runs of tokens from their neighbours", () => {
    const root = document.createElement("div");
    const inscription = new Inscription(root);
    const lane = marks(["One", 1], [" two three", 2], [" four five", 2]);
    inscription.draw(lane, 2);
    expect(drawn(root)).toEqual([
      ["One", ""],
      [" two three", "race-run race-odd"],
      [" four five", "race-coming race-run"],
    ]);
    inscription.draw(lane, 0);
    expect(root.querySelectorAll(".race-coming")).toHaveLength(3);
    inscription.draw(lane, 3);
    expect(root.querySelectorAll(".race-coming")).toHaveLength(0);
    expect(root.textContent).toBe("One two three four five");
  });

  it("adds to what is there, and begins anew with another lane", () => {
    const root = document.createElement("div");
    const inscription = new Inscription(root);
    const lane = marks(["One", 1]);
    inscription.draw(lane, 1);
    const first = root.firstChild;
    lane.push(...marks([" two", 1]));
    inscription.draw(lane, 2);
    expect(root.firstChild).toBe(first);
    expect(root.textContent).toBe("One two");
    inscription.draw(marks(["Else", 1]), 1);
    expect(drawn(root)).toEqual([["Else", ""]]);
  });

  it("shows hostile text as text", () => {
    const root = document.createElement("div");
    new Inscription(root).draw(marks(["<img src=x onerror=alert(1)>", 1]), 1);
    expect(root.querySelector("img")).toBeNull();
    expect(root.textContent).toBe("<img src=x onerror=alert(1)>");
  });
});
