import { expect, test } from "vitest";
import { Figures } from "../../src/spec/figures";

test("nothing is claimed before text arrives", () => {
  const { ttft, tpot, rate, perStep, acceptance, cacheHit, tokens } = new Figures(1000);
  expect([ttft, tpot, rate, perStep, acceptance, cacheHit]).toEqual(Array(6).fill(null));
  expect(tokens).toBe(0);
});

test("TTFT runs from the request, TPOT from the first text", () => {
  const figures = new Figures(1000);
  figures.delta(1250, { drafted: 0, accepted: 0, emitted: 1 });
  expect(figures.ttft).toBe(250);
  expect(figures.tpot).toBeNull(); // one token has no pace
  figures.delta(1300, { drafted: 4, accepted: 2, emitted: 3 });
  figures.delta(1350, { drafted: 4, accepted: 0, emitted: 1 });
  expect(figures.tokens).toBe(5);
  expect(figures.tpot).toBe(25);
  expect(figures.rate).toBe(40);
  expect(figures.perStep).toBe(5 / 3);
  expect(figures.acceptance).toBe(0.25);
});

test("tokens per step do not depend on how steps were packed into events", () => {
  const apart = new Figures(0);
  apart.delta(10, { drafted: 4, accepted: 2, emitted: 3 });
  apart.delta(20, { drafted: 4, accepted: 0, emitted: 1 });
  const merged = new Figures(0);
  merged.delta(20, { drafted: 8, accepted: 2, emitted: 4 });
  merged.delta(30, { drafted: 0, accepted: 0, emitted: 0 }); // the flushed tail of a text
  expect(apart.perStep).toBe(2);
  expect(merged.perStep).toBe(2);
});

test("a reply cut inside its only step still has a length", () => {
  const figures = new Figures(0);
  figures.delta(10, { drafted: 4, accepted: 3, emitted: 3 });
  expect(figures.perStep).toBe(3);
});

test("usage has the last word on tokens, tells of the cache, and leaves tokens per step alone", () => {
  const figures = new Figures(0);
  figures.delta(10, { drafted: 0, accepted: 0, emitted: 1 });
  figures.delta(20, { drafted: 1, accepted: 1, emitted: 2 });
  figures.finish({ output_tokens: 5, input_tokens: 40, input_token_details: { cached_tokens: 10 } }, 20);
  expect(figures.tokens).toBe(5);
  expect(figures.tpot).toBe(2.5);
  expect(figures.perStep).toBe(1.5);
  expect(figures.cacheHit).toBe(0.25);
  figures.finish(undefined, 20);
  expect(figures.tokens).toBe(5);
});

test("the time of tokens without text counts as their number does", () => {
  const figures = new Figures(0);
  for (const now of [10, 20, 30]) figures.delta(now, { drafted: 0, accepted: 0, emitted: 1 });
  expect(figures.tpot).toBe(10);
  figures.finish({ output_tokens: 5 }, 50);
  expect(figures.tpot).toBe(10);
  expect(figures.ttft).toBe(10);
});

test("a reply taken up midway has no TTFT, and its TPOT is that of the tokens seen to come", () => {
  const figures = new Figures(null);
  figures.delta(1000, { drafted: 0, accepted: 0, emitted: 1 });
  figures.delta(1050, { drafted: 0, accepted: 0, emitted: 1 });
  figures.delta(1100, { drafted: 0, accepted: 0, emitted: 1 });
  figures.finish({ output_tokens: 101 }, 1100);
  expect([figures.ttft, figures.tpot, figures.tokens]).toEqual([null, 50, 101]);
});

test("what the prompt took is known with the first text, and stays where the end does not tell it", () => {
  const figures = new Figures(0);
  figures.delta(10, { drafted: 0, accepted: 0, emitted: 1, input_tokens: 40, cached_tokens: 32 });
  expect(figures.cacheHit).toBe(0.8);
  figures.delta(20, { drafted: 0, accepted: 0, emitted: 1 });
  figures.finish(undefined, 20);
  expect([figures.prompt, figures.cached]).toEqual([40, 32]);
});

test("a server without speculation figures gives no numbers from nowhere", () => {
  const figures = new Figures(0);
  figures.delta(10, undefined);
  figures.delta(20, undefined);
  expect(figures.ttft).toBe(10);
  expect(figures.tokens).toBe(0);
  expect([figures.tpot, figures.perStep, figures.acceptance]).toEqual([null, null, null]);
});
