import { describe, expect, it } from "vitest";
import { Replay } from "../../src/race/replay";

describe("Replay", () => {
  it("stands at the end, plays from the beginning at true speed and stops at the end", () => {
    const replay = new Replay(1000);
    expect([replay.at(5), replay.playing(5)]).toEqual([1000, false]);
    replay.play(10);
    expect([replay.at(10), replay.at(260), replay.playing(260)]).toEqual([0, 250, true]);
    expect([replay.at(5000), replay.playing(5000)]).toEqual([1000, false]);
  });

  it("pauses, goes on and is moved", () => {
    const replay = new Replay(1000);
    replay.play(0);
    replay.pause(300);
    expect([replay.at(900), replay.playing(900)]).toEqual([300, false]);
    replay.play(1000);
    expect(replay.at(1100)).toBe(400);
    replay.seek(2000);
    expect([replay.at(1200), replay.playing(1200)]).toEqual([1000, false]);
    replay.seek(-5);
    expect(replay.at(1300)).toBe(0);
  });

  it("changes its speed where it is", () => {
    const replay = new Replay(1000);
    replay.play(0);
    replay.pace(0.25, 400);
    expect([replay.at(400), replay.at(800), replay.speed]).toEqual([400, 500, 0.25]);
    replay.pause(800);
    replay.pace(1, 900);
    expect([replay.at(2000), replay.playing(2000)]).toEqual([500, false]);
  });
});
