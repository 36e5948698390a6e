import { expect, test } from "vitest";
import { distribution } from "../../src/dashboard/distribution";
import { amount, countMark, meanText, quantileText, seconds, secondsMark, whole } from "../../src/dashboard/units";

const INF = Number.POSITIVE_INFINITY;

test("quantiles say when only a bound is known", () => {
  const of = distribution(
    new Map([
      [0.01, 1],
      [0.02, 2],
      [INF, 3],
    ]),
    0.05,
  );
  expect([0.1, 0.5, 1].map((q) => quantileText(of, q, seconds))).toEqual(["≤ 10.0 ms", "15.0 ms", "> 20.0 ms"]);
  expect(meanText(of, seconds)).toBe("16.7 ms");
  expect([quantileText(null, 0.5, seconds), meanText(null, seconds)]).toEqual(["–", "–"]);
});

test("marks are short", () => {
  expect([0.001, 0.025, 0.5, 1, 2.5, 120, INF].map(secondsMark)).toEqual([
    "1",
    "25",
    "500",
    "1s",
    "2.5s",
    "120s",
    "more",
  ]);
  expect([1, 64, INF].map(countMark)).toEqual(["1", "64", "more"]);
});

test("numbers are as exact as they need to be", () => {
  expect([null, 0, 3, 0.5, 12.34, 1234.5].map(amount)).toEqual(["–", "0", "3", "0.50", "12.3", "1235"]);
  expect([null, 0, 1234567.4].map(whole)).toEqual(["–", "0", "1,234,567"]);
});
