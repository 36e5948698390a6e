import { expect, it } from "vitest";
import { REASON_LEVELS, reasonLevel, reasonOf } from "../../src/spec/reasons";

const NAMES = ["best", "budget", "not worth it", "no guesses", "no room", "off", "prefill", "something new"];

it("every reason of the planner has a height of its own, and what is not known the last", () => {
  const levels = NAMES.map((name) => reasonLevel(reasonOf(name)));
  expect(levels).toEqual(Array.from({ length: REASON_LEVELS }, (_, level) => level));
});

it("a reason that is missing or new is told as one that is not known", () => {
  for (const name of [null, undefined, "", "something new", "toString"]) expect(reasonOf(name).name).toBe("not told");
});
