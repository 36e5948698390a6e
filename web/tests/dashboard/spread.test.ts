import { expect, test } from "vitest";
import { distribution } from "../../src/dashboard/distribution";
import { fullest, spread } from "../../src/dashboard/spread";

const of = (...cumulative: number[]) => distribution(new Map(cumulative.map((count, index) => [2 ** index, count])), 0);

test("from the first bucket that holds anything to the last", () => {
  const bars = spread(of(0, 0, 1, 1, 2, 2), of(0, 2, 4, 4, 8, 8));
  expect(bars).toEqual([
    { bound: 2, recentShare: 0, alwaysShare: 0.25 },
    { bound: 4, recentShare: 0.5, alwaysShare: 0.25 },
    { bound: 8, recentShare: 0, alwaysShare: 0 },
    { bound: 16, recentShare: 0.5, alwaysShare: 0.5 },
  ]);
});

test("nothing recent still shows what was before", () => {
  const bars = spread(of(0, 0), of(1, 4));
  expect(bars.map(({ recentShare, alwaysShare }) => [recentShare, alwaysShare])).toEqual([
    [0, 0.25],
    [0, 0.75],
  ]);
  expect(fullest(bars)?.bound).toBe(2);
});

test("nothing at all has no bars", () => {
  expect(spread(of(0, 0), of(0, 0))).toEqual([]);
  expect(fullest([])).toBeUndefined();
});

test("what is new decides which bar is the fullest", () => {
  expect(fullest(spread(of(3, 4), of(3, 100)))?.bound).toBe(1);
});
