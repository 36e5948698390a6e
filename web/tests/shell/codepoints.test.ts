import { expect, test } from "vitest";
import { codePoints, firstOf, indexBehind } from "../../src/shell/codepoints";

test("an emoji is one code point and two units", () => {
  expect(codePoints("a🌙b")).toBe(3);
  expect([0, 1, 2, 3].map((count) => indexBehind("a🌙b", count))).toEqual([0, 1, 3, 4]);
  expect(firstOf("a🌙b", 2)).toBe("a🌙");
});

test("a text that has fewer ends where it ends, and a half of an emoji counts as one", () => {
  expect(indexBehind("ab", 9)).toBe(2);
  expect(codePoints("a\ud83c")).toBe(2);
  expect(firstOf("\ud83cb", 1)).toBe("\ud83c");
});
