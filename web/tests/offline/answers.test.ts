import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { cachePrefix, freshOrKept, type Shell, wayOf } from "../../src/offline/answers";

const BASE = "http://127.0.0.1:8377/under/a/path/";
const SHELL: Shell = { base: BASE, files: ["", "icon.svg", "assets/main-a1b2.js"] };

const way = (path: string, { method = "GET", navigates = false } = {}) =>
  wayOf({ method, url: new URL(path, BASE).href, navigates }, SHELL);

describe("cachePrefix", () => {
  it("tells pages under other paths apart", () => {
    const bases = ["", "a/", "a/b/", "b/"].map((path) => new URL(path, BASE).href);
    const names = bases.map((base) => `${cachePrefix(base)}0123`);
    for (const base of bases) {
      expect(names.filter((name) => name.startsWith(cachePrefix(base)))).toEqual([`${cachePrefix(base)}0123`]);
    }
  });
});

describe("wayOf", () => {
  it("asks the server for the document and for what has no hash in its name", () => {
    expect(way("", { navigates: true })).toBe("fresh");
    expect(way("?from=home", { navigates: true })).toBe("fresh");
    expect(way("icon.svg")).toBe("fresh");
  });

  it("takes what never changes from what was kept", () => {
    expect(way("assets/main-a1b2.js")).toBe("kept");
  });

  it.each([
    "v1/models",
    "v1/chat/completions",
    "metrics",
    "health",
    "ready",
    "tokenize",
    "assets/main-0000.js",
    "../main-a1b2.js",
    "/assets/main-a1b2.js",
    "http://elsewhere.example/under/a/path/icon.svg",
  ])("leaves %s alone", (path) => {
    expect(way(path)).toBe("leave");
    expect(way(path, { navigates: true })).toBe("leave");
  });

  it("leaves what is not asked for as the page asks", () => {
    expect(way("")).toBe("leave");
    expect(way("icon.svg", { navigates: true })).toBe("leave");
    expect(way("assets/main-a1b2.js", { method: "HEAD" })).toBe("leave");
    expect(way("", { method: "POST", navigates: true })).toBe("leave");
  });
});

describe("freshOrKept", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const kept = async () => new Response("kept");
  const nothing = async () => undefined;
  const text = async (answer: Promise<Response>) => (await answer).text();
  const later = (ms: number, answer: Response) => () =>
    new Promise<Response>((resolve) => setTimeout(resolve, ms, answer));
  const away = () => Promise.reject(new TypeError("Failed to fetch"));

  it("gives the server's answer, though it be a refusal", async () => {
    expect(await text(freshOrKept(async () => new Response("fresh"), kept, 2000))).toBe("fresh");
    expect(await text(freshOrKept(async () => new Response("no", { status: 404 }), kept, 2000))).toBe("no");
  });

  it("gives what was kept when the server is away or overloaded", async () => {
    expect(await text(freshOrKept(away, kept, 2000))).toBe("kept");
    expect(await text(freshOrKept(async () => new Response("", { status: 502 }), kept, 2000))).toBe("kept");
  });

  it("gives what was kept when the server is silent for too long, and not before", async () => {
    const slow = text(freshOrKept(later(2001, new Response("fresh")), kept, 2000));
    await vi.advanceTimersByTimeAsync(2001);
    expect(await slow).toBe("kept");
    const justInTime = text(freshOrKept(later(1999, new Response("fresh")), kept, 2000));
    await vi.advanceTimersByTimeAsync(2001);
    expect(await justInTime).toBe("fresh");
  });

  it("waits for the server when nothing was kept, and fails with it", async () => {
    const slow = text(freshOrKept(later(9000, new Response("fresh")), nothing, 2000));
    await vi.advanceTimersByTimeAsync(9000);
    expect(await slow).toBe("fresh");
    expect((await freshOrKept(async () => new Response("", { status: 503 }), nothing, 2000)).status).toBe(503);
    await expect(freshOrKept(away, nothing, 2000)).rejects.toThrow("Failed to fetch");
  });
});
