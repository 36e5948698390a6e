import { expect, test } from "vitest";
import { extremes, levels, rates, ratios, stacked } from "../../src/dashboard/series";
import { Scrapes } from "./scrapes";

const { history } = new Scrapes()
  .take(10, { a_total: 0, b_total: 0, g: 1 })
  .take(11, { a_total: 8, b_total: 2, g: 2 })
  .take(13, { a_total: 12, b_total: 2, g: 3 })
  .take(33, { a_total: 90, b_total: 6, g: 4 })
  .take(34, { a_total: 95, b_total: 7, g: 5 });
const [a, b, g] = ["a_total", "b_total", "g"].map((name) => history.family(name)) as [never[], never[], never[]];

test("a rate is per second since the row before, and breaks at a gap", () => {
  expect(rates(history.rows, a)).toEqual([null, 8, 2, null, 5]);
});

test("a ratio is null where the divisor stood still", () => {
  expect(ratios(history.rows, a, b)).toEqual([null, 4, null, null, 5]);
  expect(ratios(history.rows, b, a, 100)).toEqual([null, 25, 0, null, 20]);
});

test("levels are as told, and break at a gap", () => {
  expect(levels(history.rows, g)).toEqual([1, 2, 3, null, 5]);
});

test("areas lie on each other", () => {
  expect(
    stacked([
      [1, null, 3],
      [10, 20, 30],
      [100, 200, 300],
    ]),
  ).toEqual([
    [1, null, 3],
    [11, null, 33],
    [111, null, 333],
  ]);
});

test("extremes pass over what is unknown", () => {
  expect(extremes([3, null, 1, 2])).toEqual({ last: 2, least: 1, most: 3 });
  expect(extremes([3, null])).toEqual({ last: null, least: 3, most: 3 });
  expect(extremes([])).toEqual({ last: null, least: null, most: null });
});
