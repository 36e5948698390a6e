import { expect, test, vi } from "vitest";
import { PAGE_CLOCK } from "../../src/wire/clock";

test("the page's clock counts up, and calls once unless it is told not to", () => {
  vi.useFakeTimers();
  const [late, never] = [vi.fn(), vi.fn()];
  const began = PAGE_CLOCK.now();
  PAGE_CLOCK.after(50, late);
  PAGE_CLOCK.after(50, never)();
  vi.advanceTimersByTime(200);
  expect([late.mock.calls.length, never.mock.calls.length]).toEqual([1, 0]);
  expect(PAGE_CLOCK.now() - began).toBe(200);
  vi.useRealTimers();
});
