import { expect, test } from "vitest";
import { Board } from "../../src/dashboard/board";
import { figures } from "../../src/dashboard/figures";
import { parse } from "../../src/dashboard/prometheus";
import { exposition } from "./scrapes";

/** A board that heard these, a second for each of `at`. */
function heard(...scrapes: [at: number, values: Record<string, number>][]): Board {
  const board = new Board({ url: "", headers: () => ({}), now: () => 0 });
  for (const [at, values] of scrapes) board.history.push(at, parse(exposition(values)));
  return board;
}

function told(board: Board): Record<string, string> {
  const spans = board.spans();
  return spans === null ? {} : Object.fromEntries(figures(board.history, spans).map(({ id, value }) => [id, value]));
}

const counts = (generated: number, steps: number, drafted: number, accepted: number) => ({
  paceline_generated_tokens_total: generated,
  paceline_steps_total: steps,
  'paceline_drafted_tokens_total{depth="1"}': drafted,
  'paceline_accepted_tokens_total{depth="1"}': accepted,
  paceline_running: 2,
});

test("rates are of the last seconds, shares of the time chosen", () => {
  const board = heard(
    [1000, counts(100, 100, 100, 10)],
    [1100, counts(160, 130, 140, 40)],
    [1290, counts(300, 200, 200, 50)],
    [1295, counts(400, 220, 200, 50)],
  );
  board.minutes.value = 1;
  expect(told(board)).toMatchObject({
    running: "2",
    "token-rate": "20",
    "step-rate": "4",
    "per-step": "2.67", // (400 - 160) / (220 - 130)
    acceptance: "17 %", // (50 - 40) / (200 - 140)
    generated: "400",
  });
  board.minutes.value = 5;
  expect(told(board)).toMatchObject({ "per-step": "2.50", acceptance: "40 %" });
});

test("where nothing was generated lately, shares are since the start", () => {
  const idle = counts(100, 50, 40, 10);
  const board = heard([1000, idle], [1001, idle]);
  expect(told(board)).toMatchObject({ "token-rate": "0", "per-step": "2", acceptance: "25 %" });
});

test("what the server does not tell is a dash, and before the first scrape there is nothing", () => {
  expect(told(heard([1, { paceline_running: 0 }]))).toMatchObject({
    running: "0",
    waiting: "–",
    ttft: "–",
    generated: "–",
  });
  expect(heard().spans()).toBeNull();
});
