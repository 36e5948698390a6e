import { describe, expect, it } from "vitest";
import { reasonsOf, stepAt, stripOf } from "../../src/spec/strip";
import type { Step } from "../../src/wire/events";

const step = (nodes: number, accepted: number, ms: number, reason: string | null = "best"): Step => ({
  ...{ ms, nodes, accepted, reason, drafted: nodes - 1, emitted: accepted + 1, tokens: [], tree: null },
});

/** x, width and height of each bar of a path. */
function bars(path: string): number[][] {
  return [...path.matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h/g)].map(([, x, , width, height]) =>
    [x, width, height].map(Number),
  );
}

describe("stripOf", () => {
  it("has a bar for each of the newest steps, as high as its nodes, filled as far as they were right", () => {
    const strip = stripOf([step(16, 3, 10), step(8, 0, 5)], 40, 480);
    expect([strip.first, strip.count, strip.pitch, strip.mostNodes, strip.mostMs]).toEqual([40, 2, 4, 16, 10]);
    expect(bars(strip.verified)).toEqual([
      [0.5, 3, 52],
      [4.5, 3, 26],
    ]);
    expect(bars(strip.accepted)).toEqual([
      [0.5, 3, 13],
      [4.5, 3, 3.3],
    ]);
    expect(strip.time).toBe("M2 2L6 12");
  });

  it("shows at most 120 steps, and fewer where it is narrow", () => {
    const many = Array.from({ length: 500 }, () => step(4, 1, 5));
    expect(stripOf(many, 7, 1400)).toMatchObject({ first: 387, count: 120 });
    expect(stripOf(many, 7, 280)).toMatchObject({ first: 437, count: 70 });
  });

  it("tells neighbours' reasons by one letter where it fits, and by a height of its own", () => {
    const steps = [step(1, 0, 1, "best"), step(1, 0, 1, "best"), step(1, 0, 1, "best"), step(1, 0, 1, "no guesses")];
    const strip = stripOf([...steps, step(1, 0, 1, "made up")], 0, 480);
    expect(strip.letters).toEqual([{ x: 1, letter: "B" }]);
    const heights = [...strip.levels.matchAll(/M[\d.]+ ([\d.]+)h/g)].map(([, y]) => Number(y));
    expect(new Set(heights).size).toBe(3);
    expect(heights).toEqual([...heights].sort((a, b) => a - b));
  });

  it("bears having no step", () => {
    expect(stripOf([], 0, 480)).toMatchObject({ first: 0, count: 0, verified: "", letters: [] });
  });
});

describe("reasonsOf", () => {
  it("has each reason once, from the strip's highest level to the lowest", () => {
    const steps = ["no guesses", "best", "made up", "best"].map((reason) => step(1, 0, 1, reason));
    expect(reasonsOf(steps).map(({ letter }) => letter)).toEqual(["B", "N", "?"]);
    expect(reasonsOf([])).toEqual([]);
  });
});

describe("stepAt", () => {
  it("finds the step under a pointer", () => {
    const strip = stripOf([step(1, 0, 1), step(1, 0, 1)], 10, 480);
    expect([-1, 0, 3.9, 4, 7.9, 8].map((x) => stepAt(strip, x))).toEqual([null, 10, 10, 11, 11, null]);
  });
});
