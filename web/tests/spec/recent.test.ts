import { expect, it } from "vitest";
import { Recent } from "../../src/spec/recent";

it("keeps the newest, in lumps, and finds each by when it came", () => {
  const recent = new Recent<number>(8);
  for (let item = 0; item < 1000; item += 1) {
    recent.push(item);
    expect(recent.total).toBe(item + 1);
    expect(recent.items.length).toBeLessThanOrEqual(9);
    expect(recent.at(item)).toBe(item);
    expect(recent.at(recent.dropped)).toBe(recent.items[0]);
  }
  expect(recent.items.length).toBeGreaterThanOrEqual(8);
  expect(recent.at(0)).toBeUndefined();
  expect(recent.at(1000)).toBeUndefined();
});
