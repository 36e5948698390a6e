// The families that the dashboard reads, in what a real server told after a few replies.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { acceptance } from "../../src/dashboard/acceptance";
import FAMILIES from "../../src/dashboard/families.json";
import { History } from "../../src/dashboard/history";
import { curvesOf, PLOTS } from "../../src/dashboard/plots";
import { parse } from "../../src/dashboard/prometheus";
import { Span } from "../../src/dashboard/span";

const families = parse(readFileSync(new URL("exposition.txt", import.meta.url), "utf8"));
const history = new History();
history.push(1, families);
const always = new Span(history, history.start, history.rows[0] ?? history.start);

test.each(Object.values(FAMILIES))("$name is a $kind with its labels", ({ name, kind, labels }) => {
  expect(families.get(name)?.kind).toBe(kind);
  for (const sample of families.get(name)?.samples ?? []) {
    const besides = [...sample.labels.keys()].filter((label) => label !== "le");
    expect(besides.toSorted()).toEqual([...labels].toSorted());
  }
});

test("every plot has all its curves", () => {
  for (const plot of PLOTS) expect(curvesOf(plot, history, history.rows)).toHaveLength(plot.curves.length);
});

test("histograms hold as many as the server counted, and sum up to its sum", () => {
  for (const family of Object.values(FAMILIES).filter(({ kind }) => kind === "histogram")) {
    const told = (part: string) =>
      families.get(family.name)?.samples.find(({ name }) => name === `${family.name}_${part}`)?.value;
    const distribution = always.distribution(family);
    expect([distribution?.count, distribution?.sum]).toEqual([told("count"), told("sum")]);
    expect(distribution?.count).toBeGreaterThan(0);
  }
});

test("guesses are told by drafter and depth", () => {
  const [all, ...drafters] = acceptance(always);
  expect(drafters.map(({ name }) => name)).toEqual(["suffix", "recurrent"]);
  expect(all?.total.drafted).toBe(always.increase(FAMILIES.drafted));
  const votes = drafters.reduce((sum, { total }) => sum + total.drafted, 0);
  expect(votes).toBeGreaterThanOrEqual(all?.total.drafted ?? Number.NaN); // a guess of two counts for both
  for (const { accepted, steps, drafted } of [all, ...drafters].flatMap((one) => one?.depths ?? [])) {
    expect(accepted).toBeLessThanOrEqual(steps);
    expect(steps).toBeLessThanOrEqual(drafted);
  }
});
