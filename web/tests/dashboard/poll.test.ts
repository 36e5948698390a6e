import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Poller, type PollState } from "../../src/dashboard/poll";
import { NEEDS_KEY, ODD_KEY, WRONG_KEY } from "../../src/wire/closing";

const FIGURES = "# TYPE paceline_steps_total counter\npaceline_steps_total 3\n";

type Answer = (signal?: AbortSignal | null) => Response | Promise<Response>;

/** A server that gives these answers in turn, the last one again and again, and a poller of it. */
class World {
  key = "";
  readonly asked: Headers[] = [];
  readonly signals: (AbortSignal | null | undefined)[] = [];
  readonly heard: [number, number | null][] = [];
  readonly states: [PollState, string][] = [];
  readonly poller: Poller;

  constructor(...answers: Answer[]) {
    this.poller = new Poller(
      {
        url: "http://server/metrics",
        headers: () => (this.key ? { authorization: `Bearer ${this.key}` } : {}),
        onFigures: (families, now) => {
          this.heard.push([families.get("paceline_steps_total")?.samples[0]?.value ?? Number.NaN, now]);
        },
        onState: (...state) => this.states.push(state),
      },
      {
        random: () => 0,
        fetch: async (_, init) => {
          this.asked.push(new Headers(init?.headers));
          this.signals.push(init?.signal);
          const answer = answers.length > 1 ? answers.shift() : answers[0];
          if (answer === undefined) throw new TypeError("no answer");
          return answer(init?.signal);
        },
      },
    );
  }

  get last(): [PollState, string] | undefined {
    return this.states.at(-1);
  }

  async after(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
  }
}

const good: Answer = () => new Response(FIGURES, { headers: { date: "Thu, 01 Jan 1970 00:01:40 GMT" } });
const status =
  (code: number): Answer =>
  () =>
    new Response(JSON.stringify({ error: { message: "No." } }), { status: code });
const away: Answer = () => Promise.reject(new TypeError("Failed to fetch"));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("figures come at once and then each second, with the server's time", async () => {
  const world = new World(good);
  world.poller.start();
  await world.after(3500);
  expect(world.heard).toEqual([
    [3, 100],
    [3, 100],
    [3, 100],
    [3, 100],
  ]);
  expect(world.last).toEqual(["live", ""]);
});

test("nothing is asked after a stop, and what was under way is dropped", async () => {
  let answer: (response: Response) => void = () => undefined;
  const world = new World(
    () =>
      new Promise<Response>((resolve) => {
        answer = resolve;
      }),
  );
  world.poller.start();
  world.poller.stop();
  expect(world.signals[0]?.aborted).toBe(true);
  answer(new Response(FIGURES));
  await world.after(60_000);
  expect([world.asked.length, world.heard.length]).toEqual([1, 0]);
  expect(world.last).toEqual(["resting", ""]);
});

test("a server that is away is asked again, later and later, and is welcome back", async () => {
  const world = new World(away, away, away, away, good);
  world.poller.start();
  await world.after(0);
  expect(world.last).toEqual(["waiting", "The server cannot be reached; trying again in a moment."]);
  await world.after(1000); // the second of the waits of 1, 1, 2, 4 seconds
  await world.after(1000);
  expect(world.asked).toHaveLength(3);
  expect(world.last?.[1]).toContain("in 2 seconds");
  await world.after(1999);
  expect(world.asked).toHaveLength(3);
  await world.after(1);
  await world.after(4000);
  expect(world.last).toEqual(["live", ""]);
  await world.after(1000);
  expect(world.heard).toHaveLength(2);
});

test("without a key it says so and asks no more, until it is started again with one", async () => {
  const world = new World(status(401), status(401), good);
  world.poller.start();
  await world.after(60_000);
  expect(world.asked).toHaveLength(1);
  expect(world.last).toEqual(["locked", NEEDS_KEY]);
  world.key = "k-1";
  world.poller.start();
  await world.after(60_000);
  expect(world.asked[1]?.get("authorization")).toBe("Bearer k-1");
  expect(world.last).toEqual(["locked", WRONG_KEY]);
  world.poller.start();
  await world.after(0);
  expect(world.last).toEqual(["live", ""]);
});

test("a key that no header can hold is told before anything is asked", async () => {
  const world = new World(good);
  world.key = "k\u2026";
  world.poller.start();
  await world.after(0);
  expect(world.last).toEqual(["locked", ODD_KEY]);
  expect(world.asked).toEqual([]);
});

test.each([
  ["<!doctype html><title>Sign in</title>", /check the proxy/],
  ["# TYPE other_total counter\nother_total 1\n", /check the proxy/],
  ["", /check the proxy/],
])("what is not Paceline's own is told: %s", async (body, sentence) => {
  const world = new World(() => new Response(body), good);
  world.poller.start();
  await world.after(0);
  expect(world.last?.[0]).toBe("waiting");
  expect(world.last?.[1]).toMatch(sentence);
  await world.after(1000);
  expect(world.last?.[0]).toBe("live");
});

test("a refusal is told in the server's own words, and tried again", async () => {
  const world = new World(status(403), status(503), good);
  world.poller.start();
  await world.after(0);
  expect(world.last?.[1]).toBe("No; trying again in a moment.");
  await world.after(1000);
  expect(world.last?.[1]).toBe("The server is not ready; trying again in a moment.");
  await world.after(1000);
  expect(world.last?.[0]).toBe("live");
});

test("a server that never answers is given up on after five seconds", async () => {
  const world = new World(
    (signal) => new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("late")))),
  );
  world.poller.start();
  await world.after(4999);
  expect(world.signals[0]?.aborted).toBe(false);
  await world.after(1);
  expect(world.signals[0]?.aborted).toBe(true);
  expect(world.last).toEqual(["waiting", "The server does not answer; trying again in a moment."]);
});

test("starting twice asks in one row only", async () => {
  const world = new World(good);
  world.poller.start();
  world.poller.start();
  await world.after(2500);
  expect(world.heard).toHaveLength(3);
});
