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
    const strip = stripOf([step(16, 3, 10), step(8, 0, 5)], 40, 480, true);
    expect([strip.first, strip.count, strip.pitch, strip.mostNodes, strip.mostMs]).toEqual([40, 2, 60, 16, 10]);
    expect(bars(strip.verified)).toEqual([
      [3.8, 52.5, 52],
      [63.8, 52.5, 26],
    ]);
    expect(bars(strip.accepted.get("model") ?? "")).toEqual([
      [3.8, 52.5, 3.3],
      [63.8, 52.5, 3.3],
    ]);
    expect(bars(strip.accepted.get("unknown") ?? "")).toEqual([[3.8, 52.5, 9.8]]);
    expect(strip.time).toBe("M30 2L90 12");
  });

  it("fills bars with the origins of their tokens, from the first upwards", () => {
    const sources = ["suffix", "suffix", "draft", "suffix", ""];
    const tokens = sources.map((source) => ({ text: "x", source }));
    const { accepted } = stripOf([{ ...step(8, 4, 5), tokens }], 0, 480, true);
    const pieces = [...accepted].map(([key, path]) => [key, [...path.matchAll(/M[\d.]+ ([\d.]+)h[\d.]+v([\d.]+)/g)]]);
    expect(pieces.map(([key, found]) => [key, (found as string[][]).map(([, top, height]) => [top, height])])).toEqual([
      ["model", [["73.5", "6.5"]]],
      [
        "suffix",
        [
          ["60.5", "13"],
          ["47.5", "6.5"],
        ],
      ],
      ["draft", [["54", "6.5"]]],
    ]);
  });

  it("takes all of the width for a short reply, and room for twice as many now and then while it runs", () => {
    const many = Array.from({ length: 100 }, () => step(4, 1, 5));
    const pitches = (ended: boolean) =>
      [1, 8, 15, 16, 40, 100].map((count) => 480 / stripOf(many.slice(0, count), 0, 480, ended).pitch);
    expect(pitches(true)).toEqual([8, 8, 15, 16, 40, 100]);
    expect(pitches(false)).toEqual([15, 15, 15, 30, 60, 120]);
  });

  it("shows at most 120 steps, and fewer where it is narrow", () => {
    const many = Array.from({ length: 500 }, () => step(4, 1, 5));
    expect(stripOf(many, 7, 1400, false)).toMatchObject({ first: 387, count: 120 });
    expect(stripOf(many, 7, 280, false)).toMatchObject({ first: 437, count: 70 });
  });

  it("tells neighbours' reasons by one letter where it fits, and by a height of its own", () => {
    const steps = [step(1, 0, 1, "best"), step(1, 0, 1, "best"), step(1, 0, 1, "best"), step(1, 0, 1, "no guesses")];
    const strip = stripOf([...steps, step(1, 0, 1, "made up")], 0, 60, false);
    expect(strip.letters).toEqual([{ x: 0.5, letter: "B" }]);
    const heights = [...strip.levels.matchAll(/M[\d.]+ ([\d.]+)h/g)].map(([, y]) => Number(y));
    expect(new Set(heights).size).toBe(3);
    expect(heights).toEqual([...heights].sort((a, b) => a - b));
  });

  it("bears having no step", () => {
    expect(stripOf([], 0, 480, false)).toMatchObject({ first: 0, count: 0, verified: "", letters: [] });
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
    const strip = stripOf([step(1, 0, 1), step(1, 0, 1)], 10, 60, false);
    expect([-1, 0, 3.9, 4, 7.9, 8].map((x) => stepAt(strip, x))).toEqual([null, 10, 10, 11, 11, null]);
  });
});
