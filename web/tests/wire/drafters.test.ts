import { describe, expect, it } from "vitest";
import { draftersOf } from "../../src/race/drafters";

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
