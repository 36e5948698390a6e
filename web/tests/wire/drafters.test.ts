import { afterEach, describe, expect, it, vi } from "vitest";
import { askDrafters, drafterName, draftersOf } from "../../src/wire/drafters";

describe("draftersOf", () => {
  it("offers the server's drafters, all of them together first, and never none", () => {
    const body = { data: [{ id: "m", speculators: ["suffix", "auto", "none", "medusa"] }] };
    expect(draftersOf(body)).toEqual(["auto", "suffix", "medusa"]);
  });

  it.each([
    null,
    {},
    { data: [] },
    { data: {} },
    { data: [{ speculators: "auto" }] },
    { data: [{ speculators: [1, ""] }] },
  ])("bears an answer of another shape: %o", (body) => {
    expect(draftersOf(body)).toEqual(["auto"]);
  });
});

describe("askDrafters", () => {
  afterEach(() => vi.unstubAllGlobals());
  const server = { url: (path: string) => `http://paceline/${path}`, headers: { authorization: "Bearer k" } };

  it("asks the server with its key, and is null where that says nothing", async () => {
    const answers: (() => Promise<Response>)[] = [
      async () => Response.json({ data: [{ speculators: ["suffix"] }] }),
      async () => new Response("", { status: 401 }),
      () => Promise.reject(new TypeError("away")),
    ];
    const asked = vi.fn((_url: string, _how: object) => answers.shift()?.());
    vi.stubGlobal("fetch", asked);
    expect(await askDrafters(server)).toEqual(["auto", "suffix"]);
    expect(asked).toHaveBeenCalledWith("http://paceline/v1/models", { headers: server.headers, cache: "no-store" });
    expect([await askDrafters(server), await askDrafters(server)]).toEqual([null, null]);
  });
});

it("calls all of them together by their own name too", () => {
  expect([drafterName("auto"), drafterName("suffix")]).toEqual(["all (auto)", "suffix"]);
});
