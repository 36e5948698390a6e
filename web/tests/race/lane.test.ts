import { describe, expect, it } from "vitest";
import { Lane } from "../../src/race/lane";

describe("Lane", () => {
  it("records when each part came, counted from the request", () => {
    const lane = new Lane(1000);
    const step = { ms: 9, nodes: 3, drafted: 2, accepted: 1, emitted: 2, reason: "best", tokens: [], tree: null };
    lane.delta("One", { drafted: 0, accepted: 0, emitted: 1 }, 1050);
    lane.delta(" two three", { drafted: 2, accepted: 1, emitted: 2, steps: [step] }, 1060);
    lane.finish({ output_tokens: 4 }, 1075);
    expect(lane.text).toBe("One two three");
    expect(lane.marks.map(({ at, tokens }) => [at, tokens])).toEqual([
      [50, 1],
      [60, 2],
    ]);
    expect(lane.steps).toEqual([{ at: 60, ...step }]);
    expect([lane.total, lane.figures.tokens]).toEqual([75, 4]);
  });

  it("knows how the figures stood at any moment", () => {
    const lane = new Lane(1000);
    lane.delta("One", { drafted: 0, accepted: 0, emitted: 1 }, 1050);
    lane.delta(" two three", { drafted: 4, accepted: 1, emitted: 2 }, 1060);
    lane.finish({ output_tokens: 4 }, 1075);
    const told = [0, 50, 60, 75, 99].map((at) => {
      const { tokens, ttft, tpot, acceptance } = lane.figuresAt(at);
      return [tokens, ttft, tpot, acceptance];
    });
    const end = [4, 50, 25 / 3, 0.25];
    expect(told).toEqual([[0, null, null, null], [1, 50, null, null], [3, 50, 5, 0.25], end, end]);
  });

  it("knows what had arrived at any moment", () => {
    const lane = new Lane(0);
    for (const at of [10, 20, 20, 30]) lane.delta("x", undefined, at);
    expect([0, 9, 10, 19, 20, 29, 30, 99].map((at) => lane.arrived(at))).toEqual([0, 0, 1, 1, 3, 3, 4, 4]);
    expect(new Lane(0).arrived(5)).toBe(0);
  });
});
