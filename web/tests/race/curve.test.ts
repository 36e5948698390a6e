import { describe, expect, it } from "vitest";
import { curve } from "../../src/race/curve";
import { Lane } from "../../src/race/lane";

const step = (emitted: number) => ({ drafted: 0, accepted: 0, emitted });

describe("curve", () => {
  it("grows from nothing to all tokens, in seconds", () => {
    const lane = new Lane(1000);
    lane.delta("a", step(1), 1500);
    lane.delta("bc", step(2), 2000);
    lane.finish({ output_tokens: 4 }, 2250);
    expect(curve(lane)).toEqual([
      [0, 0.5, 1, 1.25],
      [0, 1, 3, 4],
    ]);
  });

  it("has one point for what came at once", () => {
    const lane = new Lane(0);
    lane.delta("a", step(1), 100);
    lane.delta("b", step(1), 100);
    lane.finish({ output_tokens: 2 }, 100);
    expect(curve(lane)).toEqual([
      [0, 0.1],
      [0, 2],
    ]);
  });
});
