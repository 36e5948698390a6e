import { expect, test } from "vitest";
import { byDay, dayName } from "../../src/chat/days";

const at = (...parts: [number, number, number, number]) => new Date(...parts).getTime();
const NOW = at(2026, 2, 30, 9);

test.each([
  [NOW, "Today"],
  [at(2026, 2, 30, 0), "Today"],
  [at(2026, 2, 31, 9), "Today"], // a clock that is ahead
  [at(2026, 2, 29, 23), "Yesterday"],
  [at(2026, 2, 29, 0), "Yesterday"], // 23 hours long where clocks change
  [at(2026, 2, 28, 23), "28 March"],
  [at(2025, 11, 31, 12), "31 December 2025"],
])("%d is called by its day", (time, name) => {
  expect(dayName(time, NOW)).toBe(name);
});

test("entries stand under their days, in order", () => {
  const entries = [NOW, NOW - 1, at(2026, 2, 29, 12), at(2026, 0, 1, 12)].map((at) => ({ at }));
  expect(byDay(entries, NOW)).toEqual([
    { day: "Today", entries: entries.slice(0, 2) },
    { day: "Yesterday", entries: entries.slice(2, 3) },
    { day: "1 January", entries: entries.slice(3) },
  ]);
  expect(byDay([], NOW)).toEqual([]);
});
