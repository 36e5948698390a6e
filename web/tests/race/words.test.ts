import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../src/race/outcome";
import { SAMPLES } from "../../src/race/prompts";
import { formWords, planWords, sameness, timeSaved, verdict } from "../../src/race/words";
import { finished, PLAN } from "./fixtures";

const outcome = (...texts: [string?, string?]) => {
  const found = outcomeOf(finished(...texts));
  if (found === null) throw new Error("the race is not done");
  return found;
};

describe("timeSaved", () => {
  it("says what was saved", () => {
    expect(timeSaved({ plain: 3400, speculating: 2108 })).toBe(
      "Saved 1.29 s: 2.11 s instead of 3.40 s, 38 % less, 1.61 times as fast.",
    );
  });

  it("says what was lost, and what to try", () => {
    expect(timeSaved({ plain: 2000, speculating: 3000 })).toBe(
      "Speculating took longer: 3.00 s instead of 2.00 s, 50 % more. " +
        "Race again to see whether it stays so, or try another drafter or a smaller tree.",
    );
  });

  it("takes what two equal runs may differ by for a tie", () => {
    expect(timeSaved({ plain: 1000, speculating: 985 })).toContain("As fast as each other");
    expect(timeSaved({ plain: 1000, speculating: 1015 })).toContain("As fast as each other");
    expect(timeSaved({ plain: 1000, speculating: 975 })).toContain("less");
  });

  it("does not divide by nothing", () => {
    expect(timeSaved({ plain: 0, speculating: 0 })).toContain("Too short");
  });
});

describe("verdict", () => {
  it("says time and sameness", () => {
    expect(verdict(outcome())).toEqual([
      "Saved 200 ms: 200 ms instead of 400 ms, 50 % less, 2.00 times as fast.",
      "Identical text: 18 characters, 4 tokens.",
    ]);
  });

  it("calls a difference a fault, and says nothing of time", () => {
    const words = verdict(outcome("One two three four", "One two tree four")).join(" ");
    expect(words).toMatch(/^The texts differ from character 10 on\. .*fault.*report it\.$/);
    expect(words).not.toContain("fast");
  });

  it("calls another number of tokens a fault too", () => {
    const words = sameness({ comparison: { same: true, characters: 1 }, tokens: { plain: 2, speculating: 1 } });
    expect(words).toMatch(/^The same 1 character, but 2 tokens plain and 1 speculating\. .*fault/);
  });
});

describe("planWords", () => {
  it("says what was raced", () => {
    expect(planWords(PLAN)).toBe("Your own · seed 5 · 16 tokens · auto");
    const plan = { ...PLAN, prompt: SAMPLES[0].text, mode: "suffix", maxNodes: 4 };
    expect(planWords(plan)).toBe("Edit · seed 5 · 16 tokens · suffix · trees of 4");
  });

  it("leaves out of a form what it leaves open", () => {
    const form = { prompt: "chat", own: "", seed: "", limit: "", mode: "auto", maxNodes: "" };
    expect(formWords(form)).toBe("Conversation · auto");
  });
});
