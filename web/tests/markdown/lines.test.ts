import { describe, expect, it } from "vitest";
import { decided, Lines } from "../../src/markdown/lines";

/** What is told about the pieces, settled after each. */
function told(pieces: string[]): string[] {
  const heard: string[] = [];
  const lines = new Lines({
    begin: (line, whole) => heard.push(`${whole ? "line" : "part"} ${line}`),
    more: (text) => heard.push(`more ${text}`),
    end: () => heard.push("end"),
  });
  for (const piece of pieces) {
    lines.push(piece);
    lines.settle();
  }
  lines.finish();
  return heard;
}

describe("Lines", () => {
  it("passes on a line as soon as it is clear what it is", () => {
    expect(told(["- ", "- a", "b\n", "--", "-\n"])).toEqual(["part - - a", "more b", "end", "line ---", "end"]);
  });

  it("waits for the end of what only its end can tell", () => {
    for (const open of ["", "#", "-", "- -", "**", "```js", "> ~~~x", "1. ```", "===", "|--", "| :-", "2024"])
      expect(decided(open)).toBe(false);
    for (const clear of ["a", "# a", "**a", "- a", "``a", "[a", "<", "|a", "2024 a", "    a"])
      expect(decided(clear)).toBe(true);
  });

  it("takes line breaks of every kind, also in halves", () => {
    expect(told(["a\r", "\nb\rc", "\n"])).toEqual(["part a", "end", "line b", "end", "part c", "end"]);
  });

  it("puts characters that came in halves together, and marks halves that stay alone", () => {
    expect(told(["a\uD83D", "\uDE00b", "\uD83D", "c\uDE00"])).toEqual([
      "part a",
      "more 😀b",
      "more \uFFFDc\uFFFD",
      "end",
    ]);
  });

  it("takes a line for text that stays open for too long", () => {
    expect(told(["-".repeat(700), "-".repeat(700)])).toEqual([
      `part ${"-".repeat(1000)}`,
      `more ${"-".repeat(400)}`,
      "end",
    ]);
  });
});
