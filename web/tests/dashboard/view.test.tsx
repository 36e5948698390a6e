// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FormValues } from "../../src/settings/parse";
import { Server } from "../../src/wire/server";
import { exposition } from "./scrapes";

// uPlot asks for the screen's resolution when it is loaded, and jsdom has no screen.
vi.stubGlobal("matchMedia", () => new EventTarget());
const { default: View } = await import("../../src/dashboard/view");

const root = document.createElement("div");
const server = new Server("http://localhost/");
const settings = signal({} as FormValues);
const asked = vi.fn(async () => new Response(exposition({ paceline_generated_tokens_total: 7 })));

/** The view, seen or left, once `ms` have passed. */
async function after(ms: number, shown: boolean): Promise<void> {
  act(() => render(<View server={server} settings={settings} shown={shown} />, root));
  await act(() => vi.advanceTimersByTimeAsync(ms).then(() => undefined));
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", asked);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("nothing is asked for a dashboard that is left, and what it knew is there again", async () => {
  await after(1500, true);
  expect(asked).toHaveBeenCalledTimes(2);
  expect(root.querySelector("[data-figure=generated]")?.textContent).toContain("7");
  await after(5000, false);
  expect(asked).toHaveBeenCalledTimes(2);
  await after(0, true);
  expect(root.querySelector("[data-figure=generated]")?.textContent).toContain("7");
  expect(asked).toHaveBeenCalledTimes(3);
  act(() => render(null, root));
});

test("what concerns only who runs the server is folded", async () => {
  await after(0, true);
  const fold = root.querySelector<HTMLDetailsElement>(".dashboard-server");
  expect(fold?.open).toBe(false);
  expect(fold?.querySelector("[data-counts=answers]")).not.toBeNull();
  expect(root.querySelectorAll("[data-counts=answers]")).toHaveLength(1);
  act(() => render(null, root));
});
