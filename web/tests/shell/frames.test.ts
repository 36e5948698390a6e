// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Frames, PACE_MS } from "../../src/shell/frames";

const FRAME_MS = 16;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "cancelAnimationFrame", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("whatever changes within a pace is drawn once", () => {
  const frames = new Frames();
  frames.now();
  for (let passed = 0; passed < 10 * PACE_MS; passed += FRAME_MS) {
    frames.mark();
    frames.mark();
    vi.advanceTimersByTime(FRAME_MS);
  }
  expect(frames.tick.value).toBeGreaterThan(6);
  expect(frames.tick.value).toBeLessThanOrEqual(11);
});

test("nothing is drawn that did not change", () => {
  const frames = new Frames();
  frames.mark();
  vi.advanceTimersByTime(100);
  expect(frames.tick.value).toBe(1);
  vi.advanceTimersByTime(100);
  expect(frames.tick.value).toBe(1);
});

test("a press is drawn at once, and the frame that waited has nothing left to do", () => {
  const frames = new Frames();
  frames.mark();
  frames.now();
  vi.advanceTimersByTime(100);
  expect(frames.tick.value).toBe(1);
});

test("what changed during a rest is drawn at its end, once", () => {
  const frames = new Frames();
  frames.rest(true);
  frames.mark();
  vi.advanceTimersByTime(100);
  frames.now();
  expect(frames.tick.value).toBe(0);
  frames.rest(false);
  expect(frames.tick.value).toBe(1);
  frames.rest(true);
  frames.rest(false);
  expect(frames.tick.value).toBe(1);
});
