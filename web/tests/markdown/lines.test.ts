import { describe, expect, it } from "vitest";
import { decided, Pieces } from "../../src/markdown/lines";

/** What becomes of the pieces, one by one, and of what is left. */
function joined(pieces: string[]): string[] {
  const halves = new Pieces();
  return [...pieces.map((piece) => halves.join(piece)), halves.rest()];
}

describe("A line that still comes", () => {
  it.each(["", "#", "-", "- -", "**", "```js", "> ~~~x", "1. ```", "===", "|--", "| :-", "2024"])(
    "may still become anything: %j",
    (open) => expect(decided(open)).toBe(false),
  );

  it.each(["a", "# a", "**a", "- a", "``a", "[a", "<", "|a", "2024 a", "    a"])("is what it is: %j", (clear) =>
    expect(decided(clear)).toBe(true),
  );
});

describe("Pieces", () => {
  it("are put together to line breaks of one kind, also those that come in halves", () => {
    expect(joined(["a\r", "\nb\rc", "\n\r"])).toEqual(["a", "\nb\nc", "\n", "\n"]);
  });

  it("are put together to characters, and halves that stay alone are marked", () => {
    expect(joined(["a\uD83D", "\uDE00b", "\uD83D", "c\uDE00", "\0\uD83D"])).toEqual([
      "a",
      "😀b",
      "",
      "\uFFFDc\uFFFD",
      "\uFFFD",
      "\uFFFD",
    ]);
  });
});
