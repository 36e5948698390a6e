// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Board } from "../../src/dashboard/board";
import FAMILIES from "../../src/dashboard/families.json";
import { exposition } from "./scrapes";

/** What each scrape finds; null: nobody answers. */
let answers: (number | null)[] = [];
let now = 100;

function opened(...given: (number | null)[]): Board {
  answers = given;
  return new Board({ url: "http://127.0.0.1:9/metrics", headers: () => ({}), now: () => now });
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", async () => {
    const [count] = answers;
    if (answers.length > 1) answers.shift();
    if (count == null) throw new TypeError("no network");
    return new Response(exposition({ paceline_generated_tokens_total: count }));
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const after = async (ms: number) => {
  now += ms / 1000;
  await vi.advanceTimersByTimeAsync(ms);
};

test("figures are told of the last seconds, of as long as was chosen, and of always", async () => {
  const board = opened(10, 14, 20);
  expect(board.spans()).toBeNull();
  board.poller.start();
  await after(0);
  await after(1000);
  await after(1000);
  expect([board.state.value, board.tick.value]).toEqual(["live", 3]);
  const spans = board.spans();
  expect([spans?.now, spans?.recent].map((span) => span?.increase(FAMILIES.generated))).toEqual([10, 10]);
  board.poller.stop();
});

test("an outage is said once, whatever the seconds of each try, and its end", async () => {
  const board = opened(1, null, null, null, null, null, 2);
  board.poller.start();
  await after(0);
  expect(board.spoken.value).toBe("");
  await after(1000);
  const said = board.spoken.value;
  expect(said).toMatch(/trying again/);
  const seen = new Set<string>();
  for (let i = 0; i < 60 && board.state.value === "waiting"; i += 1) {
    expect(board.spoken.value).toBe(said);
    seen.add(board.sentence.value);
    await after(1000);
  }
  expect(seen.size).toBeGreaterThan(1);
  expect([board.state.value, board.spoken.value]).toEqual(["live", "Connected again."]);
  board.poller.stop();
});

test("leaving and coming back is no news", async () => {
  const board = opened(1);
  board.poller.start();
  await after(0);
  board.poller.stop();
  board.poller.start();
  await after(0);
  expect([board.state.value, board.spoken.value]).toEqual(["live", ""]);
  board.poller.stop();
});
