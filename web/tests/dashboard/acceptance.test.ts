import { expect, test } from "vitest";
import { acceptance, type Guesser, shareOf } from "../../src/dashboard/acceptance";
import { Scrapes } from "./scrapes";

test("by drafter and depth, to the deepest guess, all together first", () => {
  const scrapes = new Scrapes().take(1, {
    'paceline_drafted_tokens_total{depth="1"}': 10,
    'paceline_drafted_tokens_total{depth="2"}': 4,
    'paceline_drafted_tokens_total{depth="10"}': 0,
    'paceline_accepted_tokens_total{depth="1"}': 6,
    'paceline_accepted_tokens_total{depth="2"}': 1,
    'paceline_accepted_tokens_total{depth="10"}': 0,
    'paceline_drafted_steps_total{depth="1"}': 7,
    'paceline_drafted_steps_total{depth="2"}': 3,
    'paceline_drafter_drafted_tokens_total{drafter="suffix",depth="1"}': 8,
    'paceline_drafter_drafted_tokens_total{drafter="suffix",depth="2"}': 0,
    'paceline_drafter_drafted_tokens_total{drafter="draft",depth="1"}': 0,
    'paceline_drafter_accepted_tokens_total{drafter="suffix",depth="1"}': 2,
    'paceline_drafter_accepted_tokens_total{drafter="suffix",depth="2"}': 0,
    'paceline_drafter_drafted_steps_total{drafter="suffix",depth="1"}': 5,
  });
  expect(acceptance(scrapes.always)).toEqual([
    {
      name: "all",
      total: { drafted: 14, accepted: 7 },
      depths: [
        { depth: "1", drafted: 10, accepted: 6, steps: 7 },
        { depth: "2", drafted: 4, accepted: 1, steps: 3 },
      ],
    },
    {
      name: "suffix",
      total: { drafted: 8, accepted: 2 },
      depths: [
        { depth: "1", drafted: 8, accepted: 2, steps: 5 },
        { depth: "2", drafted: 0, accepted: 0, steps: 0 },
      ],
    },
  ]);
});

test("a server that does not tell drafters apart still tells depths; no guess is no row", () => {
  const counts = (drafted: number) => ({
    'paceline_drafted_tokens_total{depth="1"}': drafted,
    'paceline_accepted_tokens_total{depth="1"}': 0,
  });
  expect(acceptance(new Scrapes().take(1, counts(2)).always).map(({ name }) => name)).toEqual(["all"]);
  expect(acceptance(new Scrapes().take(1, counts(0)).always)).toEqual([]);
  expect(acceptance(new Scrapes().take(1, {}).always)).toEqual([]);
});

test("each depth stands in its own place, also where the server leaves some out", () => {
  const drafted = [10, 9, 2].map((depth) => [`paceline_drafted_tokens_total{depth="${depth}"}`, depth] as const);
  const [all] = acceptance(new Scrapes().take(1, Object.fromEntries(drafted)).always);
  expect(all?.depths.map((guesses) => guesses.drafted)).toEqual([0, 2, 0, 0, 0, 0, 0, 0, 9, 10]);
  expect(all?.total.drafted).toBe(21);
});

test("the deepest depth that is told holds deeper guesses too, and says so", () => {
  const drafted = [1, 2, 16].map((depth) => [`paceline_drafted_tokens_total{depth="${depth}"}`, 1] as const);
  const [all] = acceptance(new Scrapes().take(1, Object.fromEntries(drafted)).always);
  expect(all?.depths.map(({ depth }) => depth)).toEqual([...Array.from({ length: 15 }, (_, i) => `${i + 1}`), "16+"]);
});

test("a depth that is no number, or that no tree has, is left out", () => {
  const drafted = ["one", "-1", "1e9", "1"].map(
    (depth) => [`paceline_drafted_tokens_total{depth="${depth}"}`, 3] as const,
  );
  const [all] = acceptance(new Scrapes().take(1, Object.fromEntries(drafted)).always);
  expect(all?.depths).toEqual([{ depth: "1+", drafted: 3, accepted: 0, steps: 0 }]);
});

test("siblings of which one is always right do not make their depth look worse", () => {
  const scrapes = new Scrapes().take(1, {
    'paceline_drafted_tokens_total{depth="1"}': 30,
    'paceline_drafted_tokens_total{depth="2"}': 0,
    'paceline_accepted_tokens_total{depth="1"}': 10,
    'paceline_drafted_steps_total{depth="1"}': 10,
  });
  const [{ total, depths: [first] = [] } = {}] = acceptance(scrapes.always) as [Guesser?];
  expect(total).toEqual({ drafted: 30, accepted: 10 });
  expect(first && shareOf(first.accepted, first.steps)).toBe(1);
});

test("a share of nothing is none", () => {
  expect([shareOf(0, 0), shareOf(1, 4)]).toEqual([null, 0.25]);
});
