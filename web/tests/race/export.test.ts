import { describe, expect, it } from "vitest";
import { exported } from "../../src/race/export";
import { type Outcome, outcomeOf } from "../../src/race/outcome";
import { finished, PLAN } from "./fixtures";

describe("exported", () => {
  it("says all that was measured, in plain JSON", () => {
    const run = exported(outcomeOf(finished()) as Outcome, "tiny", new Date(0));
    expect(JSON.parse(JSON.stringify(run))).toEqual(run);
    expect(run).toMatchObject({
      format: "paceline-race/1",
      taken: "1970-01-01T00:00:00.000Z",
      model: "tiny",
      plan: PLAN,
      first: "plain",
      identical: true,
      lanes: {
        plain: { total_ms: 400, ttft_ms: 100, tokens: 4, tokens_per_step: 1, text: "One two three four" },
        speculating: { total_ms: 200, drafted: 4, accepted: 2, tokens_per_step: 2 },
      },
    });
  });
});
