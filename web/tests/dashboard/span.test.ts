import { expect, test } from "vitest";
import { level } from "../../src/dashboard/span";
import { Scrapes } from "./scrapes";

const [A, B, NONE] = [{ name: "a_total" }, { name: "b_total" }, { name: "none_total" }];

test("rates and ratios are of what grew, and null where nothing can be told", () => {
  const scrapes = new Scrapes().take(10, { a_total: 1, b_total: 4 }).take(14, { a_total: 9, b_total: 4 });
  expect(scrapes.all.rate(A)).toBe(2);
  expect(scrapes.all.rate(B)).toBe(0);
  expect(scrapes.all.ratio(B, A)).toBe(0);
  expect(scrapes.all.ratio(A, B)).toBeNull();
  expect([scrapes.all.rate(NONE), scrapes.all.ratio(NONE, A), scrapes.all.increase(NONE)]).toEqual([null, null, null]);
  expect(new Scrapes().take(1, { a_total: 5 }).all.rate(A)).toBeNull();
});

test("labels choose the series", () => {
  const scrapes = new Scrapes()
    .take(1, { 'a_total{x="1",y="p"}': 1 })
    .take(2, { 'a_total{x="1",y="p"}': 2, 'a_total{x="1",y="q"}': 10, 'a_total{x="2",y="q"}': 100 });
  expect(scrapes.all.increase(A, { x: "1" })).toBe(11);
  expect(scrapes.all.by(A, "x", { y: "q" })).toEqual(
    new Map([
      ["1", 10],
      ["2", 100],
    ]),
  );
  expect(scrapes.all.by(A, "z")).toEqual(new Map());
});

test("a distribution is the difference of two scrapes", () => {
  const early = { 'h_bucket{le="1.0"}': 1, 'h_bucket{le="2.0"}': 1, 'h_bucket{le="+Inf"}': 1, h_count: 1, h_sum: 0.5 };
  const late = { 'h_bucket{le="1.0"}': 2, 'h_bucket{le="2.0"}': 5, 'h_bucket{le="+Inf"}': 6, h_count: 6, h_sum: 15 };
  const scrapes = new Scrapes().take(1, early).take(2, late);
  expect(scrapes.all.distribution({ name: "h" })).toEqual({
    bounds: [1, 2, Number.POSITIVE_INFINITY],
    counts: [1, 3, 1],
    count: 5,
    sum: 14.5,
  });
  expect(scrapes.always.distribution({ name: "h" })?.count).toBe(6);
  expect(scrapes.all.distribution({ name: "other" })).toBeNull();
});

test("a bucket whose bound is no number, or less than nothing, is left out", () => {
  const odd = ["x", "-1", "NaN", "-Inf", "Infinity", ""].map((le) => [`h_bucket{le="${le}"}`, 5]);
  const scrapes = new Scrapes()
    .take(1, {})
    .take(2, { ...Object.fromEntries(odd), 'h_bucket{le="2"}': 3, 'h_bucket{le="+Inf"}': 4 });
  expect(scrapes.all.distribution({ name: "h" })).toMatchObject({
    bounds: [2, Number.POSITIVE_INFINITY],
    counts: [3, 1],
  });
  const none = new Scrapes().take(1, {}).take(2, { 'h_bucket{le="x"}': 5 });
  expect(none.all.distribution({ name: "h" })).toBeNull();
});

test("a level is the newest, over all series or some", () => {
  const { history } = new Scrapes().take(1, { 'g{s="a"}': 9 }).take(2, { 'g{s="a"}': 3, 'g{s="b"}': 4 });
  expect([level(history, { name: "g" }), level(history, { name: "g" }, { s: "b" })]).toEqual([7, 4]);
  expect(level(history, { name: "none" })).toBeNull();
  expect(level(new Scrapes().take(1, { g: Number.NaN }).history, { name: "g" })).toBeNull();
});
