import { expect, test } from "vitest";
import { distribution, mean, quantile } from "../../src/dashboard/distribution";

const INF = Number.POSITIVE_INFINITY;
// 2 up to 1, 4 up to 2, none up to 4, 3 up to 8, 1 beyond
const SOME = distribution(
  new Map([
    [8, 9],
    [1, 2],
    [INF, 10],
    [2, 6],
    [4, 6],
  ]),
  40,
);

test("buckets are sorted and no longer cumulative", () => {
  expect(SOME.bounds).toEqual([1, 2, 4, 8, INF]);
  expect(SOME.counts).toEqual([2, 4, 0, 3, 1]);
  expect(SOME.count).toBe(10);
  expect(mean(SOME)).toBe(4);
});

test.each([
  [0.2, { value: 1, side: "under" }],
  [0.4, { value: 1.5, side: "at" }],
  [0.6, { value: 2, side: "at" }],
  [0.8, { value: 4 + (4 * 2) / 3, side: "at" }],
  [0.9, { value: 8, side: "at" }],
  [0.95, { value: 8, side: "over" }],
  [0, { value: 1, side: "under" }],
])("quantile %d", (q, expected) => {
  expect(quantile(SOME, q)).toEqual(expected);
});

test("an empty bucket at the rank is passed over", () => {
  expect(
    quantile(
      distribution(
        new Map([
          [1, 0],
          [2, 0],
          [4, 1],
          [INF, 1],
        ]),
        3,
      ),
      0,
    ),
  ).toEqual({ value: 2, side: "at" });
});

test("nothing has no quantile and no mean", () => {
  const none = distribution(
    new Map([
      [1, 0],
      [INF, 0],
    ]),
    0,
  );
  expect([quantile(none, 0.5), mean(none)]).toEqual([null, null]);
  expect(quantile(distribution(new Map([[INF, 3]]), 3), 0.5)).toBeNull(); // nothing is known of where
});

test("counts that shrank while they were read are no negative bars", () => {
  expect(
    distribution(
      new Map([
        [1, 3],
        [2, 2],
      ]),
      1,
    ).counts,
  ).toEqual([3, 0]);
});

test("agrees with the values themselves to a bucket", () => {
  const bounds = [1, 2, 4, 8, 16];
  const values = Array.from({ length: 500 }, (_, index) => ((index * 7919) % 500) / 32 + 0.01);
  const cumulative = new Map(bounds.map((bound) => [bound, values.filter((value) => value <= bound).length]));
  const of = distribution(cumulative, 0);
  const sorted = values.toSorted((a, b) => a - b);
  for (const q of [0.1, 0.5, 0.9, 0.95]) {
    const exact = sorted[Math.ceil(q * sorted.length) - 1] ?? 0;
    const told = quantile(of, q)?.value ?? 0;
    const bound = (value: number) => bounds.findIndex((each) => value <= each);
    expect(bound(told)).toBe(bound(exact));
  }
});
