import { describe, expect, it } from "vitest";
import { Mouth } from "../../src/voice/mouth";
import { Reader } from "../../src/voice/reader";
import { HandClock, noted } from "./fakes";

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
