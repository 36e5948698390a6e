import { describe, expect, it } from "vitest";
import { Reader, wordStarts } from "../../src/voice/reader";
import { HandClock, noted } from "./fakes";

describe("Reader", () => {
  it("tells each word when its turn comes, in code points", () => {
    const clock = new HandClock();
    const log: string[] = [];
    new Reader(clock, () => 60).say(" 🌙 It's far.", noted(log, "clause"));
    expect(log).toEqual(["clause starts", "clause 3"]);
    clock.pass(1_000);
    expect(log.at(-1)).toBe("clause 8");
    clock.pass(999);
    expect(log).toHaveLength(3);
    clock.pass(1);
    expect(log.at(-1)).toBe("clause ends");
  });

  it("finds words where there are no spaces", () => {
    expect(wordStarts("我喜欢月亮。").length).toBeGreaterThan(1);
    expect(wordStarts("…")).toEqual([]);
  });

  it("is silent once hushed", () => {
    const clock = new HandClock();
    const log: string[] = [];
    const reader = new Reader(clock, () => 60);
    reader.say("one two", noted(log, "clause"));
    reader.hush();
    clock.pass(5_000);
    expect(log).toEqual(["clause starts", "clause 0"]);
  });
});
