// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { NASTY, ORDINARY } from "./corpus";
import { bare, byMarked, shown } from "./html";

const named = (texts: string[]) => texts.map((text) => [text.slice(0, 60), text] as const);

describe("Reply", () => {
  it.each(named(ORDINARY))("shows what marked makes of the whole text: %j", (_, text) => {
    expect(bare(shown([text]))).toBe(byMarked(text));
  });

  it.each(named([...ORDINARY, ...NASTY]))("shows the same in whatever pieces the text comes: %j", (_, text) => {
    const once = shown([text]).innerHTML;
    const random = generator(text.length);
    for (const longest of [1, 6]) {
      const parts = pieces(text, Math.max(longest, Math.ceil(text.length / 200)), random);
      expect(shown(parts, () => random() < 8 / parts.length).innerHTML).toBe(once);
    }
  });
});

function pieces(text: string, longest: number, random: () => number): string[] {
  const found: string[] = [];
  for (let at = 0; at < text.length; ) {
    const size = 1 + Math.floor(random() * longest);
    found.push(text.slice(at, at + size));
    at += size;
  }
  return found;
}

/** Numbers from 0 up to 1, the same in each run. */
function generator(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}
