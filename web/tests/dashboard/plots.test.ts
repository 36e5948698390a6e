import { expect, test } from "vitest";
import { curvesOf, PLOTS, type Plot, rangeOf, watchedSince } from "../../src/dashboard/plots";
import { Scrapes } from "./scrapes";

function drawn(id: string, { history }: Scrapes) {
  const plot = PLOTS.find((each) => each.id === id);
  return plot ? curvesOf(plot, history, history.rows) : [];
}

test("blocks lie on each other up to all there are, the pinned ones counted once", () => {
  const scrapes = new Scrapes().take(1, {
    'paceline_cache_blocks{state="free"}': 70,
    'paceline_cache_blocks{state="cached"}': 20,
    'paceline_cache_blocks{state="held"}': 10,
    paceline_cache_blocks_pinned: 5,
  });
  const curves = drawn("cache", scrapes);
  expect(curves.map(({ values }) => values)).toEqual([[10], [5], [15], [70]]);
  expect(curves.map((curve) => curve.drawn)).toEqual([[10], [15], [30], [100]]);
});

test("milliseconds of a step, and the model's part of them", () => {
  const scrapes = new Scrapes()
    .take(1, { paceline_steps_total: 0, paceline_step_seconds_total: 0, paceline_forward_seconds_total: 0 })
    .take(2, { paceline_steps_total: 20, paceline_step_seconds_total: 0.5, paceline_forward_seconds_total: 0.25 });
  expect(drawn("step-time", scrapes).map(({ values }) => values)).toEqual([
    [null, 25],
    [null, 12.5],
  ]);
});

test("what the server does not tell is left out, and the rest is drawn", () => {
  const scrapes = new Scrapes().take(1, { paceline_running: 1 });
  expect(drawn("requests", scrapes).map(({ name }) => name)).toEqual(["running"]);
  expect(drawn("speed", scrapes)).toEqual([]);
});

test("no two curves of a plot look alike, with or without colour", () => {
  for (const { curves } of PLOTS) {
    expect(new Set(curves.map(({ stroke }) => stroke.token)).size).toBe(curves.length);
    expect(new Set(curves.map(({ stroke }) => stroke.dash.join())).size).toBe(curves.length);
  }
});

test("an axis of percent reaches to all of it, others to what there was", () => {
  const plot = (id: string) => PLOTS.find((each) => each.id === id) as Plot;
  expect([rangeOf(plot("gain"), 0), rangeOf(plot("gain"), 62)]).toEqual([
    [0, 100],
    [0, 100],
  ]);
  expect([rangeOf(plot("speed"), 0), rangeOf(plot("speed"), 100)]).toEqual([
    [0, 1],
    [0, 105],
  ]);
});

test("a plot that is mostly empty says since when the page watched", () => {
  const oldest = new Date(2026, 10, 30, 20, 58, 12).getTime() / 1000;
  expect(watchedSince(oldest, oldest + 20, 300)).toBe("Watched since 20:58; earlier is not kept.");
  expect(watchedSince(oldest, oldest + 151, 300)).toBe("");
});
