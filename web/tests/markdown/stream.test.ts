// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MarkdownStream } from "../../src/markdown/stream";

const observed = new Set<Element>();

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "requestAnimationFrame", "cancelAnimationFrame", "performance"],
  });
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe(element: Element): void {
        observed.add(element);
      }
      disconnect(): void {
        observed.clear();
      }
    },
  );
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const frames = () => vi.advanceTimersByTime(1000);

function shown(text: string) {
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  stream.push(text);
  return { root, stream };
}

it("draws what has come with the next frame, and the rest when the text is over", () => {
  const { root, stream } = shown("Some **bold");
  expect(root.textContent).toBe("");
  frames();
  expect(root.innerHTML).toContain("<strong>bold</strong>");
  stream.push("** text, [later]\n\n[later]: https://later.example");
  stream.finish();
  frames();
  expect(root.querySelector("a")?.getAttribute("href")).toBe("https://later.example");
  expect(vi.getTimerCount()).toBe(0);
});

it("draws no more and watches nothing once it has ended", () => {
  const { root, stream } = shown("```\nwide\n```\n");
  frames();
  expect(observed.size).toBe(1);
  stream.push("late");
  stream.end();
  expect(vi.getTimerCount()).toBe(0);
  expect([root.textContent?.includes("late"), observed.size]).toEqual([false, 0]);
});

it("copies a block of code without its last line break, and says so for a while after the last press", async () => {
  const writeText = vi.fn(async () => {});
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  const { root } = shown("```py\na = 1\nb = 2\n```\n");
  frames();
  const press = async () => {
    root.querySelector("button")?.click();
    await vi.advanceTimersByTimeAsync(0);
  };
  const status = () => root.querySelector("[role=status]")?.textContent;
  await press();
  expect(writeText).toHaveBeenCalledWith("a = 1\nb = 2");
  expect(status()).toBe("Copied");
  vi.advanceTimersByTime(3000);
  await press();
  vi.advanceTimersByTime(3000);
  expect(status()).toBe("Copied");
  vi.advanceTimersByTime(3000);
  expect(status()).toBe("");
});

it("selects the code where the browser lets no page copy", async () => {
  vi.stubGlobal("navigator", { clipboard: { writeText: () => Promise.reject(new Error("denied")) } });
  const { root } = shown("```\ncode\n```\n");
  document.body.append(root);
  frames();
  root.querySelector("button")?.click();
  await vi.advanceTimersByTimeAsync(0);
  expect(root.querySelector("[role=status]")?.textContent).toBe("Selected: press Ctrl+C or ⌘C");
  expect(getSelection()?.toString()).toContain("code");
  root.remove();
});
