// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Blocks } from "../../src/markdown/blocks";
import { Inline } from "../../src/markdown/inline";
import { Reply } from "../../src/markdown/reply";
import { DRAWING, MarkdownStream } from "../../src/markdown/stream";
import { shown } from "./html";

afterEach(() => vi.restoreAllMocks());

/** Pieces as tokens bring them. */
const tokens = (text: string): string[] => text.match(/[\s\S]{1,4}/g) ?? [];

describe("MarkdownStream", () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "requestAnimationFrame", "cancelAnimationFrame", "performance"],
    });
  });
  afterEach(() => vi.useRealTimers());

  const frames = () => vi.advanceTimersByTime(1000);

  function streamed(...parts: string[]) {
    const root = document.createElement("div");
    const stream = new MarkdownStream(root);
    for (const part of parts) stream.push(part);
    return { root, stream };
  }

  /** A block of code on the page, its button and what it says; writeText: the clipboard's. */
  function code(text: string, writeText: () => Promise<void>) {
    Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
    const { root } = streamed(text);
    frames();
    const press = async () => {
      root.querySelector("button")?.click();
      await vi.advanceTimersByTimeAsync(0);
    };
    return { root, press, status: () => root.querySelector('[role="status"]')?.textContent };
  }

  it("draws what has come with the next frame", () => {
    const { root } = streamed("Some **bold");
    expect(root.textContent).toBe("");
    frames();
    expect(root.innerHTML).toContain("<strong>bold</strong>");
    expect(root.hasAttribute(DRAWING)).toBe(true);
  });

  it("shows in the end what the whole text shows at once", async () => {
    const text = "# Title\n\n- a\n- **b**\n\n```py\nx = 1\n```\n\nSee [r].\n\n[r]: https://e.example\n";
    const { root, stream } = streamed(...tokens(text));
    const whole = streamed(text);
    stream.finish();
    whole.stream.finish();
    frames();
    expect(vi.getTimerCount()).toBe(0);
    await vi.waitFor(() => expect(root.querySelector(".hljs-number")?.textContent).toBe("1"));
    expect(root.innerHTML).toBe(whole.root.innerHTML);
    expect([root, whole.root].map((shown) => shown.hasAttribute(DRAWING))).toEqual([false, false]);
    expect(root.querySelector("a")?.href).toBe("https://e.example/");
  });

  it("keeps an end that could still have become something else", () => {
    for (const text of [" 1", "-", "#", "text\n=", "```"]) {
      const { root, stream } = streamed(text);
      stream.finish();
      frames();
      const whole = shown([text]).innerHTML;
      expect(root.innerHTML).toBe(whole);
    }
  });

  it("draws no more and watches nothing once it has ended", () => {
    const watch = vi.spyOn(ResizeObserver.prototype, "observe");
    const forget = vi.spyOn(ResizeObserver.prototype, "disconnect");
    const { root, stream } = streamed("```\nwide\n```\n");
    frames();
    expect(watch).toHaveBeenCalledTimes(2); // the block, and the code in it
    stream.push("late");
    stream.end();
    expect(vi.getTimerCount()).toBe(0);
    expect(root.textContent).not.toContain("late");
    expect(forget).toHaveBeenCalledOnce();
  });

  it("copies code without its last line break, and says so for a while after the last press", async () => {
    const writeText = vi.fn(async () => undefined);
    const { press, status } = code("```sh\nls <x>\n```\n", writeText);
    await press();
    expect(writeText).toHaveBeenCalledWith("ls <x>");
    expect(status()).toBe("Copied");
    vi.advanceTimersByTime(3000);
    await press();
    vi.advanceTimersByTime(3000);
    expect(status()).toBe("Copied");
    vi.advanceTimersByTime(3000);
    expect(status()).toBe("");
  });

  it("selects code where the browser lets no page copy", async () => {
    const { root, press, status } = code("```\ncode\n```\n", () => Promise.reject(new Error("denied")));
    document.body.append(root);
    await press();
    expect(status()).toBe("Selected: press Ctrl+C or ⌘C");
    expect(getSelection()?.toString()).toContain("code");
    root.remove();
  });
});

describe("A reply of 100 kB", () => {
  const line = "some **bold** words and `code` and more of them\n";
  it.each([
    ["paragraphs", `${line}\n`],
    ["one paragraph", line],
    ["one line", line.replace("\n", " ")],
    ["a list", `- ${line}`],
    ["a list in an item", `- ${line}${`  - ${line}`.repeat(3000)}`],
    ["paragraphs of an item", `- ${line}${`\n  ${line}`.repeat(3000)}`],
    ["a quote", `> ${line}`],
    ["a list in a quote", `> - ${line}`],
    ["a table", `| ${line.trim()} | x |\n`],
    ["code", `    ${line}`],
    ["fenced code", `\`\`\`\n${line.repeat(3000)}`],
    ["code of an item", `- \`\`\`\n${`  ${line}`.repeat(3000)}`],
  ])("is read a bounded number of times: %s", (kind, part) => {
    const lex = vi.spyOn(Blocks.prototype, "lex");
    let read = 0;
    vi.spyOn(Inline.prototype, "read").mockImplementation((text: string) => {
      read += text.length;
      const fragment = document.createDocumentFragment();
      fragment.append(text);
      return fragment;
    });
    const size = 100_000;
    const whole = (kind === "a table" ? "| a | b |\n|---|---|\n" : "") + part.repeat(Math.ceil(size / part.length));
    const text = whole.slice(0, size);
    // Drawn every 100 characters, as at 200 tokens a second on a slow screen.
    const pieces = text.match(/[\s\S]{1,100}/g) ?? [];
    shown(pieces);
    // Each drawing reads the open end, which has at most 2,000 characters.
    expect(read).toBeLessThan(text.length + pieces.length * 2_200);
    // Its blocks are found anew with each drawing: in one and a half times as much, since it is not shortened each time.
    const lexed = lex.mock.calls.map(([part]) => part.length);
    expect(Math.max(...lexed)).toBeLessThan(3_200);
    expect(lexed.reduce((sum, length) => sum + length)).toBeLessThan(pieces.length * 3_000);
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
    expect(root.querySelector("code")?.textContent).toBe("a **b**\n- c\n");
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

  it.each(["[r]: https://e", "[r", "| a | b", "| a |", "- [", "- [x]"])("does not show %j as text first", (text) => {
    const root = document.createElement("div");
    const reply = new Reply(root);
    reply.push(text);
    reply.draw();
    expect(root.textContent).toBe("");
  });
});
