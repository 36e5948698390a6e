import { expect, test } from "vitest";
import { backoff } from "../../src/wire/backoff";

test("waits double up to a cap and spread by a half", () => {
  expect([0, 1, 2, 3].map((attempt) => backoff(attempt, () => 0))).toEqual([500, 1000, 2000, 4000]);
  expect(backoff(50, () => 0)).toBe(15_000);
  expect(backoff(0, () => 1)).toBe(250);
});
