// @vitest-environment jsdom

import { render } from "preact";
import { expect, test } from "vitest";
import { Depths } from "../../src/dashboard/depths";
import { Scrapes } from "./scrapes";

function drawn(values: Readonly<Record<string, number>>): HTMLElement {
  const scrapes = new Scrapes().take(1, {}).take(2, values);
  const root = document.createElement("div");
  render(<Depths spans={{ now: scrapes.all, recent: scrapes.all, always: scrapes.always }} />, root);
  return root;
}

test("a cell tells its share and of how many steps, without a title", () => {
  const root = drawn({
    'paceline_drafted_tokens_total{depth="1"}': 3000,
    'paceline_drafted_tokens_total{depth="2"}': 2,
    'paceline_accepted_tokens_total{depth="1"}': 1000,
    'paceline_drafted_steps_total{depth="1"}': 2000,
  });
  const cells = [...root.querySelectorAll(".dashboard-depth")].map(({ textContent }) => textContent);
  expect(cells).toEqual(["50 %1,000 of 2,000", "–"]);
  expect(root.querySelector("[title]")).toBeNull();
  expect([...root.querySelectorAll("thead th")].map(({ textContent }) => textContent)).toEqual([
    ...["drafter", "guesses", "accepted", "depth 1", "depth 2+"],
  ]);
});

test("where nothing was guessed there is no table", () => {
  expect(drawn({}).textContent).toBe("Guesses acceptedno guess yet");
});
