import { describe, expect, it } from "vitest";
import { kept, outcomeOf } from "../../src/race/outcome";
import { Race } from "../../src/race/race";
import { finished, PLAN } from "./fixtures";

describe("outcomeOf", () => {
  it("says nothing of a race that is not done", () => {
    const race = new Race();
    expect(outcomeOf(race)).toBeNull();
    race.start(PLAN, "plain");
    expect(outcomeOf(race)).toBeNull();
    race.hear({ type: "session.created" }, 0);
    race.stop();
    expect(outcomeOf(race)).toBeNull();
  });

  it("has the texts compared, and the tokens and times of both lanes", () => {
    const race = finished("One two three four", "One two three five", "speculating");
    expect(outcomeOf(race)).toEqual({
      plan: PLAN,
      first: "speculating",
      comparison: { same: false, at: 16, before: "One two three f", first: "our", second: "ive" },
      tokens: { plain: 4, speculating: 4 },
      total: { plain: 400, speculating: 200 },
      lanes: race.lanes,
    });
  });
});

describe("kept", () => {
  const same = { same: true, characters: 9 } as const;
  const other = { same: false, at: 3, before: "On", first: "e", second: "" } as const;

  it("asks for the same characters out of the same number of tokens", () => {
    expect(kept({ comparison: same, tokens: { plain: 4, speculating: 4 } })).toBe(true);
    expect(kept({ comparison: same, tokens: { plain: 4, speculating: 5 } })).toBe(false);
    expect(kept({ comparison: other, tokens: { plain: 4, speculating: 4 } })).toBe(false);
  });
});
