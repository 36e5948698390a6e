import { describe, expect, it } from "vitest";
import { Blocks } from "../../src/markdown/blocks";

const types = (text: string) => new Blocks().lex(text).map(({ type }) => type);

describe("Blocks", () => {
  it("have raw HTML as text", () => {
    expect(types("<div>\n**x**\n</div>")).toEqual(["paragraph"]);
  });

  it("are never read within their lines", () => {
    const [paragraph] = new Blocks().lex("**a** [b](c)");
    expect(paragraph).toMatchObject({ text: "**a** [b](c)", tokens: [] });
  });

  it("are final once another one follows: a definition's title has one line", () => {
    expect(types("[a]: /url\n'title'\ntext")).toEqual(["def", "paragraph"]);
    expect(types("[a]: /url\n'title\ntext")).toEqual(["def", "paragraph"]);
    expect(types("[a]: /url\n'title\ntext'")).toEqual(["def", "paragraph"]);
    expect(types("[a]: /url 'title\ntext'")).toEqual(["paragraph"]);
  });

  it("have the text of a task without its box, in lists of both kinds", () => {
    for (const text of ["- [x] a\n- b", "- [x] a\n\n- b"]) {
      const [list] = new Blocks().lex(text);
      expect(list).toMatchObject({ items: [{ task: true, checked: true, tokens: [{ text: "a" }] }, { task: false }] });
    }
  });

  it("are no tables of more than 64 columns", () => {
    const table = (columns: number) => `${"|a".repeat(columns)}|\n${"|-".repeat(columns)}|\n`;
    expect(types(table(64))).toEqual(["table"]);
    expect(types(table(65))).toEqual(["paragraph"]);
  });

  it("go 24 quotes and lists deep", () => {
    const depth = (text: string) => JSON.stringify(new Blocks().lex(text)).match(/"type":"(blockquote|list)"/g)?.length;
    expect(depth(`${">".repeat(30)} a`)).toBe(24);
    expect(depth(`${"- ".repeat(30)}a`)).toBe(24);
    expect(depth(`${"> - ".repeat(30)}a`)).toBe(24);
  });

  it("are found in quotes of 24 depths that lack marks, as fast as in others", () => {
    // marked alone would read the innermost quote 2^24 times.
    const quotes = Array.from({ length: 24 }, (_, line) => `${"> ".repeat(24 - line)}a`);
    expect(types(`${quotes.join("\n")}\nlazy`)).toEqual(["blockquote"]);
  });
});
