import { expect, it } from "vitest";
import { responseCreate, tooLong, unsendable } from "../../src/chat/requests";
import { SETTINGS } from "./talk";

const long = "x".repeat(1_000_000);

it("measures what a frame may hold in bytes", () => {
  expect(["x".repeat(900_000), long, "ü".repeat(600_000), "\u0001".repeat(170_000)].map(tooLong)).toEqual([
    ...[false, true, true, true],
  ]);
});

it("says why nothing can be sent", () => {
  const after = (...texts: string[]) => ({ turns: texts.map((text) => ({ text })), elsewhere: false });
  expect(unsendable("Hi", after("Ho"))).toBe("");
  expect(unsendable(long, after())).toContain("This message is too long");
  expect(unsendable("Hi", after("Ho", long))).toContain("A turn of this conversation is too long");
  expect(unsendable("Hi", { ...after("Ho"), elsewhere: true })).toContain("in another tab");
});

it("asks for a reply with its steps, which outlives its socket", () => {
  expect(responseCreate({ ...SETTINGS, speculation: false })).toMatchObject({
    response: { seed: 7, speculation: { mode: "none", trace: true }, x_resume: true },
  });
});
