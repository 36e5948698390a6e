// @vitest-environment jsdom
import { afterEach, describe, expect, it, vi } from "vitest";
import { Inline } from "../../src/markdown/inline";
import { MarkdownStream, renderMarkdown } from "../../src/markdown/stream";
import { shown } from "./html";

afterEach(() => vi.restoreAllMocks());

/** Pieces as tokens bring them. */
const tokens = (text: string): string[] => text.match(/[\s\S]{1,4}/g) ?? [];

describe("MarkdownStream", () => {
  it("shows in the end what the whole text shows at once", async () => {
    const text = "# Title\n\n- a\n- **b**\n\n```py\nx = 1\n```\n\nSee [r].\n\n[r]: https://e.example\n";
    const [streamed, whole] = [document.createElement("div"), document.createElement("div")];
    const stream = new MarkdownStream(streamed);
    for (const token of tokens(text)) stream.push(token);
    await stream.finish();
    await renderMarkdown(whole, text);
    expect(streamed.innerHTML).toBe(whole.innerHTML);
    expect(streamed.querySelector(".hljs-number")?.textContent).toBe("1");
    expect(streamed.querySelector("a")?.href).toBe("https://e.example/");
  });

  it("can be used again", async () => {
    const root = document.createElement("div");
    const stream = new MarkdownStream(root);
    stream.push("- old");
    stream.reset();
    stream.push("new");
    await stream.finish();
    expect(root.innerHTML).toBe('<p dir="auto">new</p>');
  });

  it("copies code without its last line break, and says so", async () => {
    const root = document.createElement("div");
    await renderMarkdown(root, "```sh\nls <x>\n```");
    const writeText = vi.fn(async () => undefined);
    vi.stubGlobal("navigator", { clipboard: { writeText } });
    root.querySelector("button")?.click();
    await vi.waitFor(() => expect(root.querySelector('[role="status"]')?.textContent).toBe("Copied"));
    expect(writeText).toHaveBeenCalledWith("ls <x>");
    vi.unstubAllGlobals();
  });
});

describe("A reply of 100 kB", () => {
  const line = "some **bold** words and `code` and more of them\n";
  it.each([
    ["paragraphs", `${line}\n`],
    ["one paragraph", line],
    ["one line", line.replace("\n", " ")],
    ["a list", `- ${line}`],
    ["a quote", `> ${line}`],
    ["a table", `| ${line.trim()} | x |\n`],
  ])("is read a bounded number of times: %s", (kind, part) => {
    let read = 0;
    vi.spyOn(Inline.prototype, "read").mockImplementation((text: string) => {
      read += text.length;
      const fragment = document.createDocumentFragment();
      fragment.append(text);
      return fragment;
    });
    const size = 100_000;
    const text = (kind === "a table" ? "| a | b |\n|---|---|\n" : "") + part.repeat(Math.ceil(size / part.length));
    // Drawn every 100 characters, as at 200 tokens a second on a slow screen.
    const pieces = text.match(/[\s\S]{1,100}/g) ?? [];
    shown(pieces);
    // Each drawing reads the open end, which has at most 2,000 characters.
    expect(read).toBeLessThan(text.length + pieces.length * 2_200);
  });

  it("of code is never read at all", () => {
    const read = vi.spyOn(Inline.prototype, "read");
    const code = "let a = 1; // **x**\n".repeat(5_000);
    expect(shown([`\`\`\`js\n${code}`]).querySelector("code")?.textContent).toBe(code);
    expect(read).not.toHaveBeenCalled();
  });
});

describe("What a reply shows", () => {
  it("is complete while a fence is open", () => {
    const root = shown(["before\n```\n", "a **b**\n", "- c"]);
    expect(root.querySelector("code")?.textContent).toBe("a **b**\n- c");
  });

  it("runs from right to left where its letters do", () => {
    const root = shown(["- 1. مرحبا\n- abc\n\n> שלום\n\ntext"]);
    expect(root.querySelector("ul")?.dir).toBe("rtl");
    expect(root.querySelector("blockquote")?.dir).toBe("rtl");
    expect([...root.querySelectorAll("p")].every((p) => p.dir === "auto")).toBe(true);
  });

  it("has boxes for tasks, which say their state and cannot be pressed", () => {
    const boxes = [...shown(["- [ ] a\n- [x] b"]).querySelectorAll("input")];
    expect(boxes.map((box) => [box.ariaLabel ?? box.getAttribute("aria-label"), box.checked, box.disabled])).toEqual([
      ["To do", false, true],
      ["Done", true, true],
    ]);
  });

  it("puts headings below the page's own", () => {
    const names = [...shown(["# a\n## b\n##### c\n###### d"]).children].map(({ tagName }) => tagName);
    expect(names).toEqual(["H3", "H4", "H6", "H6"]);
  });

  it("does not show a link's definition, nor half a table", () => {
    const root = document.createElement("div");
    const texts: string[] = [];
    new MutationObserver(() => texts.push(root.textContent ?? "")).observe(root, { childList: true, subtree: true });
    root.append(shown(["[r]: https://e.example\n"]));
    expect(root.textContent).toBe("");
  });
});
