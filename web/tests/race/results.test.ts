import { describe, expect, it } from "vitest";
import { type Outcome, outcomeOf } from "../../src/race/outcome";
import type { Plan } from "../../src/race/plan";
import { Results } from "../../src/race/results";
import { finished, PLAN } from "./fixtures";

function result(plain: number, speculating: number, change: Partial<Plan> = {}): Outcome {
  return { ...(outcomeOf(finished()) as Outcome), total: { plain, speculating }, plan: { ...PLAN, ...change } };
}

const OTHER = { prompt: "Another." };

describe("Results", () => {
  it("says the median of each lane over the races", () => {
    const results = new Results();
    results.add(result(300, 100));
    results.add(result(500, 90));
    const [row] = results.rows;
    expect([row?.total("plain"), row?.total("speculating")]).toEqual([400, 95]);
    results.add(result(320, 400));
    expect([row?.total("plain"), row?.total("speculating")]).toEqual([320, 100]);
    expect([row?.runs, row?.perStep, row?.identical]).toEqual([3, 2, true]);
  });

  it("has a row for each drafter and tree, so that they can be compared", () => {
    const results = new Results();
    results.add(result(300, 100));
    results.add(result(300, 150, { mode: "suffix" }));
    results.add(result(300, 120, { maxNodes: 4 }));
    results.add(result(300, 130, { mode: "suffix" }));
    expect(results.rows.map((row) => [row.mode, row.maxNodes, row.runs, row.total("speculating")])).toEqual([
      ["auto", null, 1, 100],
      ["suffix", null, 2, 140],
      ["auto", 4, 1, 120],
    ]);
  });

  it("does not forget that texts once differed", () => {
    const results = new Results();
    results.add(outcomeOf(finished("One two", "One too")) as Outcome);
    results.add(result(1, 1));
    expect(results.rows[0]?.identical).toBe(false);
  });

  it("lets the lanes take turns at running first", () => {
    const results = new Results();
    expect(results.next(PLAN)).toBe("plain");
    results.add(result(1, 1));
    expect(results.next({ ...PLAN, maxNodes: 4 })).toBe("speculating");
    expect(results.next({ ...PLAN, ...OTHER })).toBe("plain");
    results.add(result(1, 1));
    expect(results.next(PLAN)).toBe("plain");
  });

  it("begins a new table for another reply, and forgets the oldest races of a long row", () => {
    const results = new Results();
    for (let i = 0; i < 60; i += 1) results.add(result(1, 1));
    expect(results.rows.map(({ runs }) => runs)).toEqual([50]);
    results.add(result(1, 1, OTHER));
    expect(results.rows.map(({ runs }) => runs)).toEqual([1]);
  });
});
