import { describe, expect, it } from "vitest";
import { Mouth } from "../../src/voice/mouth";
import { Reader, wordStarts } from "../../src/voice/reader";
import type { Progress } from "../../src/voice/speech";
import { HandClock } from "./fakes";

function noted(log: string[], name: string): Progress {
  return {
    started: () => log.push(`${name} starts`),
    word: (codePoints) => log.push(`${name} ${codePoints}`),
    finished: () => log.push(`${name} ends`),
  };
}

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

describe("Mouth", () => {
  it("speaks in order, and chooses the speaker anew for each clause", () => {
    const clock = new HandClock();
    const log: string[] = [];
    const slow = new Reader(clock, () => 60);
    const fast = new Reader(clock, () => 600);
    let chosen = slow;
    const mouth = new Mouth(() => chosen);
    mouth.speak("one", noted(log, "first"));
    chosen = fast;
    mouth.speak("two", noted(log, "second"));
    clock.pass(1_000);
    expect(log).toEqual(["first starts", "first 0", "second starts", "second 0", "first ends"]);
    clock.pass(100);
    expect(log.at(-1)).toBe("second ends");
    mouth.speak("three", noted(log, "third"));
    expect(log.at(-1)).toBe("third 0");
  });

  it("forgets what waits when it is stopped, and can begin again", () => {
    const clock = new HandClock();
    const log: string[] = [];
    const mouth = new Mouth(() => new Reader(clock, () => 60));
    mouth.speak("one", noted(log, "first"));
    mouth.speak("two", noted(log, "second"));
    mouth.stop();
    clock.pass(5_000);
    expect(log).toEqual(["first starts", "first 0"]);
    mouth.speak("three", noted(log, "third"));
    expect(log.at(-1)).toBe("third 0");
  });
});
