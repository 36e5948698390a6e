import { expect, test } from "vitest";
import { acceptance, shareOf } from "../../src/dashboard/acceptance";
import { Scrapes } from "./scrapes";

test("by drafter and depth, to the deepest guess, all together first", () => {
  const scrapes = new Scrapes().take(1, {
    'paceline_drafted_tokens_total{depth="1"}': 10,
    'paceline_drafted_tokens_total{depth="2"}': 4,
    'paceline_drafted_tokens_total{depth="10"}': 0,
    'paceline_accepted_tokens_total{depth="1"}': 6,
    'paceline_accepted_tokens_total{depth="2"}': 1,
    'paceline_accepted_tokens_total{depth="10"}': 0,
    'paceline_drafter_drafted_tokens_total{drafter="suffix",depth="1"}': 8,
    'paceline_drafter_drafted_tokens_total{drafter="suffix",depth="2"}': 0,
    'paceline_drafter_drafted_tokens_total{drafter="draft",depth="1"}': 0,
    'paceline_drafter_accepted_tokens_total{drafter="suffix",depth="1"}': 2,
    'paceline_drafter_accepted_tokens_total{drafter="suffix",depth="2"}': 0,
  });
  expect(acceptance(scrapes.always)).toEqual([
    {
      name: "all",
      total: { drafted: 14, accepted: 7 },
      depths: [
        { drafted: 10, accepted: 6 },
        { drafted: 4, accepted: 1 },
      ],
    },
    {
      name: "suffix",
      total: { drafted: 8, accepted: 2 },
      depths: [
        { drafted: 8, accepted: 2 },
        { drafted: 0, accepted: 0 },
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

test("a depth that is no number, or that no tree has, is left out", () => {
  const drafted = ["one", "-1", "1e9", "1"].map(
    (depth) => [`paceline_drafted_tokens_total{depth="${depth}"}`, 3] as const,
  );
  const [all] = acceptance(new Scrapes().take(1, Object.fromEntries(drafted)).always);
  expect(all?.depths).toEqual([{ drafted: 3, accepted: 0 }]);
});

test("a share of nothing is none", () => {
  expect([shareOf({ drafted: 0, accepted: 0 }), shareOf({ drafted: 4, accepted: 1 })]).toEqual([null, 0.25]);
});
