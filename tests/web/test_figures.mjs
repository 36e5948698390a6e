import assert from "node:assert/strict";
import test from "node:test";

import { decimal, Figures, milliseconds, percent } from "../../web/figures.js";

test("nothing is claimed before text arrives", () => {
  const figures = new Figures(1000);
  for (const name of ["ttft", "tpot", "rate", "perStep", "acceptance"]) assert.equal(figures[name], null, name);
  assert.equal(figures.tokens, 0);
});

test("TTFT runs from the request, TPOT from the first text", () => {
  const figures = new Figures(1000);
  figures.delta(1250, { drafted: 0, accepted: 0, emitted: 1 });
  assert.equal(figures.ttft, 250);
  assert.equal(figures.tpot, null); // one token has no pace
  figures.delta(1300, { drafted: 4, accepted: 2, emitted: 3 });
  figures.delta(1350, { drafted: 4, accepted: 0, emitted: 1 });
  assert.equal(figures.tokens, 5);
  assert.equal(figures.tpot, 25);
  assert.equal(figures.rate, 40);
  assert.equal(figures.perStep, 5 / 3);
  assert.equal(figures.acceptance, 0.25);
});

test("tokens per step do not depend on how steps were packed into events", () => {
  const apart = new Figures(0);
  apart.delta(10, { drafted: 4, accepted: 2, emitted: 3 });
  apart.delta(20, { drafted: 4, accepted: 0, emitted: 1 });
  const merged = new Figures(0);
  merged.delta(20, { drafted: 8, accepted: 2, emitted: 4 });
  merged.delta(30, { drafted: 0, accepted: 0, emitted: 0 }); // the flushed tail of a text
  assert.equal(apart.perStep, 2);
  assert.equal(merged.perStep, 2);
});

test("a reply cut inside its only step still has a length", () => {
  const figures = new Figures(0);
  figures.delta(10, { drafted: 4, accepted: 3, emitted: 3 });
  assert.equal(figures.perStep, 3);
});

test("usage has the last word on tokens and leaves tokens per step alone", () => {
  const figures = new Figures(0);
  figures.delta(10, { emitted: 1 });
  figures.delta(20, { accepted: 1, emitted: 2 });
  figures.finish({ output_tokens: 5 });
  assert.equal(figures.tokens, 5);
  assert.equal(figures.tpot, 2.5);
  assert.equal(figures.perStep, 1.5);
  figures.finish(undefined);
  assert.equal(figures.tokens, 5);
});

test("a server without speculation figures, or with nonsense in them, gives no numbers from nowhere", () => {
  const figures = new Figures(0);
  figures.delta(10, undefined);
  figures.delta(20, { drafted: "9", accepted: -1, emitted: Number.NaN });
  assert.equal(figures.ttft, 10);
  assert.equal(figures.tokens, 0);
  assert.equal(figures.tpot, null);
  assert.equal(figures.perStep, null);
  assert.equal(figures.acceptance, null);
});

test("numbers keep three digits or so and switch to seconds in time", () => {
  const cases = [[null, "–"], [8.26, "8.3 ms"], [99.94, "99.9 ms"], [99.96, "100 ms"], [999.4, "999 ms"], [999.6, "1.00 s"], [12345, "12.3 s"]];
  for (const [value, text] of cases) assert.equal(milliseconds(value), text);
  assert.deepEqual([null, 1, 2.555, 12.34, 123.4].map(decimal), ["–", "1.00", "2.56", "12.3", "123"]);
  assert.deepEqual([null, 0, 0.625, 1].map(percent), ["–", "0 %", "63 %", "100 %"]);
});
