import { expect, test } from "vitest";
import { History } from "../../src/dashboard/history";
import { parse } from "../../src/dashboard/prometheus";
import { Scrapes } from "./scrapes";

const C = { name: "c_total" };

test("counters are subtracted, and a series that appears later stood at 0", () => {
  const scrapes = new Scrapes()
    .take(10, { 'c_total{a="1"}': 5 })
    .take(11, { 'c_total{a="1"}': 7, 'c_total{a="2"}': 4 });
  expect(scrapes.all.increase(C)).toBe(6);
  expect(scrapes.all.by(C, "a")).toEqual(
    new Map([
      ["1", 2],
      ["2", 4],
    ]),
  );
  expect(scrapes.always.increase(C)).toBe(11);
});

test("a server that was started again counts on, and its start is the new one's", () => {
  const scrapes = new Scrapes()
    .take(10, { c_total: 100, d_total: 1, g: 3 })
    .take(11, { c_total: 110, d_total: 1, g: 4 })
    .take(12, { c_total: 2, d_total: 5, g: 0 }) // d did not fall, and was started again all the same
    .take(13, { c_total: 6, d_total: 6, g: 1 });
  expect(scrapes.all.increase(C)).toBe(16);
  expect(scrapes.all.increase({ name: "d_total" })).toBe(6);
  expect(scrapes.always.increase(C)).toBe(6);
  expect(scrapes.always.increase({ name: "d_total" })).toBe(6);
});

test("a restart shows where all counts are higher than before, by when they were made", () => {
  const scrapes = new Scrapes()
    .take(10, { c_total: 1, h_created: 5 })
    .take(11, { c_total: 1, h_created: 5, i_created: 9 }) // a counter made later is no restart
    .take(13, { c_total: 9, h_created: 12 });
  expect(scrapes.all.increase(C)).toBe(9);
  expect(scrapes.history.start.at).toBe(12);
});

test("a series that is gone after a restart adds nothing; a gauge that is gone is unknown", () => {
  const scrapes = new Scrapes().take(10, { 'c_total{a="1"}': 5, g: 1 }).take(11, {}).take(12, { 'c_total{a="1"}': 2 });
  expect(scrapes.all.increase(C)).toBe(2);
  const [gauge] = scrapes.history.family("g");
  expect(scrapes.history.rows.map(({ values }) => values[gauge?.index ?? -1])).toEqual([1, Number.NaN, Number.NaN]);
});

test("a counter that is not a number is taken for 0", () => {
  const scrapes = new Scrapes().take(10, { c_total: Number.NaN }).take(11, { c_total: 3 });
  expect(scrapes.all.increase(C)).toBe(3);
});

test.each([Number.POSITIVE_INFINITY, 1e300])("a gauge of %d, which no plot has room for, is unknown", (value) => {
  const scrapes = new Scrapes().take(10, { g: value, c_total: 1 }).take(11, { g: 2, c_total: value });
  const [gauge] = scrapes.history.family("g");
  expect(scrapes.history.rows.map(({ values }) => values[gauge?.index ?? -1])).toEqual([Number.NaN, 2]);
  expect(scrapes.all.increase(C)).toBe(0);
});

test("rows a second apart are kept for 15 minutes, older ones thinned, and in all they are bounded", () => {
  const history = new History();
  const families = parse("# TYPE c_total counter\nc_total 1");
  for (let at = 0; at < 6000; at += 1) history.push(at, families);
  const times = history.rows.map(({ at }) => at);
  const newest = times.filter((at) => at >= 5999 - 900);
  expect(newest).toHaveLength(901);
  const older = times.slice(0, -901);
  expect(older).toHaveLength(240);
  for (const [index, at] of older.slice(1).entries()) expect(at - (older[index] ?? 0)).toBe(15);
  expect(history.rows.some(({ gap }) => gap)).toBe(false);
});

test("a pause is a gap, and thinning keeps it", () => {
  const history = new History();
  const families = parse("c 1");
  for (const at of [0, 1, 2, 20, 21, 1000]) history.push(at, families);
  expect(history.rows.map(({ at, gap }) => [at, gap])).toEqual([
    [0, false],
    [20, true],
    [1000, true],
  ]);
});

test("looking back ends at a row, or at the server's start where that is later and before the first row", () => {
  const scrapes = new Scrapes();
  for (const at of [100, 101, 102]) scrapes.take(at, { c_total: at, h_created: 1060 }, at + 1000); // its clock is ahead
  const { history } = scrapes;
  expect(history.start.at).toBe(60);
  expect([history.before(1).at, history.before(50).at]).toEqual([101, 100]);
  expect([history.since(1).at, history.since(30).at, history.since(50).at]).toEqual([101, 100, 60]);
  expect(history.within(1).map(({ at }) => at)).toEqual([101, 102]);
});

test("the number of series is bounded", () => {
  const lines = Array.from({ length: 6000 }, (_, index) => `m{i="${index}"} 1`);
  const history = new History();
  history.push(1, parse(lines.join("\n")));
  expect(history.columns).toHaveLength(4096);
  expect(history.newest?.values).toHaveLength(4096);
});
