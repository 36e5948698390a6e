import { describe, expect, it } from "vitest";
import { Blocks, DRAWN } from "../../src/markdown/blocks";
import { agree, openFence, shorten, stretches } from "../../src/markdown/shorten";

const blocks = new Blocks();
const kept = (text: string) => shorten(blocks.lex(text), text);
const long = "so many words ".repeat(200);

describe("What is kept of a text that goes on", () => {
  it.each([
    ["its last block", "# a\n\ntext\n\nmore\nand more\n", "more\nand more\n"],
    ["a list's last item", "- a\n- b\n- c\n  d\n\n", "- c\n  d\n\n"],
    ["what that ends with", "1. a\n2.  b\n\n    c\n", "2.  c\n"],
    ["the marks around it", "- a\n- b\n  > c\n  > - d\n  > - e\n  > f\n", "- > - e\n  > f\n"],
    ["the indent of a list below", "- a\n    - b\n    - c\n", "-\n    - c\n"],
    ["where a tab leads", "-\ta\n\n\tb\n", "-   b\n"],
    ["a quote without all its marks", "> > a\n> b\n>\n> > c\nd\n", "> > c\n> d\n"],
    [
      "a table's head and last row",
      "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
      "| a | b |\n|---|---|\n| 3 | 4 |\n",
    ],
    ["what opens a fence, and the last line", "~~~~js\na\n~~~\nb\n\n", "~~~~js\nb\n\n"],
    ["a fence that is closed", "```\na\nb\n```\n", "```\na\nb\n```\n"],
    ["the last line of indented code", "    a\n\n    b\n", "    b\n"],
    ["a task that would be one only then", "- a\n\n  [ ] b\n", "- a\n\n  [ ] b\n"],
    ["a short paragraph", "a\nb\n", "a\nb\n"],
  ])("is %s", (_, text, short) => {
    expect(kept(text)).toBe(short);
    expect(agree(blocks.lex(text), blocks.lex(short))).toBe(true);
  });

  it("is the end of a long paragraph, which becomes nothing else any more", () => {
    const end = stretches(long).at(-1);
    expect(kept(long)).toBe(`${DRAWN}${end}`);
    expect(kept(`- # ${long}`)).toBe(`- # ${DRAWN}${end}`);
    for (const line of ["===", "|-|"])
      expect(blocks.lex(`${kept(long)}\n${line}\n`)).toMatchObject([{ type: "paragraph" }]);
  });

  it("is told from what reads otherwise", () => {
    for (const [was, is] of [
      ["- a\n- b", "b"],
      ["- a", "1. a"],
      ["a", "a\n\na"],
      ["a", "b"],
      ["a\n    b", "    b"],
    ] as const)
      expect(agree(blocks.lex(was), blocks.lex(is))).toBe(false);
  });
});

describe("Stretches", () => {
  it("end where lines end, else where words do, else anywhere but within a character", () => {
    expect(stretches("a b")).toEqual(["a b"]);
    expect(stretches(`a b\n${"c".repeat(2000)}`)).toEqual(["a b\n", "c".repeat(2000)]);
    expect(stretches(`a ${"c".repeat(2000)}`)).toEqual(["a ", "c".repeat(2000)]);
    expect(stretches(`a${"👍".repeat(1000)}`)).toEqual([`a${"👍".repeat(999)}`, "👍"]);
  });
});

describe("A fence", () => {
  it.each(["```\n", "```js\na\n``", "   ~~~~\na\n~~~", "```\n``` a"])("is open: %j", (raw) =>
    expect(openFence(raw)).not.toBeNull(),
  );

  it.each(["```\na\n```", "```\n   `````  \n", "~~~\n~~~", "    a"])("is not open: %j", (raw) =>
    expect(openFence(raw)).toBeNull(),
  );
});
