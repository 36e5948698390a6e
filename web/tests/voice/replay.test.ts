import { describe, expect, it } from "vitest";
import { Replay } from "../../src/voice/replay";
import { ownWords, SCRIPTS, type Script } from "../../src/voice/transcripts";
import { Stage } from "./fakes";

const SCRIPT: Script = {
  name: "Two turns",
  about: "",
  turns: [
    {
      partials: [
        { at: 0, text: "Tell" },
        { at: 300, text: "Tell me." },
      ],
      breaksInAfter: null,
    },
    { partials: [{ at: 0, text: "Stop." }], breaksInAfter: 2 },
  ],
};

function played(script = SCRIPT) {
  const stage = new Stage().up();
  const replay = new Replay(stage.loop, stage.clock);
  replay.start(script);
  return { stage, replay };
}

describe("Replay", () => {
  it("speaks at the recorded times and ends the turn after a silence", () => {
    const { stage, replay } = played();
    expect(stage.loop.state).toBe("listening");
    stage.clock.pass(299);
    expect(stage.take()).toEqual([{ type: "input_text.append", text: "Tell" }]);
    stage.clock.pass(1);
    expect(stage.take()).toEqual([{ type: "input_text.append", text: " me." }]);
    stage.clock.pass(499);
    expect(stage.loop.state).toBe("listening");
    stage.clock.pass(1);
    expect(stage.loop.state).toBe("thinking");
    expect(replay.script).toBe(SCRIPT);
  });

  it("breaks in when so many words were heard", () => {
    const { stage, replay } = played();
    stage.clock.pass(800);
    stage.say("It is far.", 10);
    stage.voice.word(3);
    replay.look();
    stage.clock.pass(1_000);
    expect(stage.loop.state).toBe("speaking");
    stage.voice.word(6);
    replay.look();
    stage.clock.pass(0);
    expect(stage.loop.state).toBe("interrupted");
    stage.done("cancelled");
    expect(stage.lines.at(-1)).toBe("assistant: It is |");
    stage.clock.pass(500);
    expect(stage.loop.state).toBe("thinking");
    stage.say("Yes.", 4).done();
    stage.voice.finish();
    replay.look();
    expect(replay.script).toBeNull();
    expect(stage.loop.state).toBe("idle");
  });

  it("speaks the next turn behind a reply that was shorter", () => {
    const { stage, replay } = played();
    stage.clock.pass(800);
    stage.say("It.", 3).done();
    stage.voice.finish();
    replay.look();
    stage.clock.pass(700);
    expect(stage.loop.pending.text).toBe("Stop.");
  });

  it("ends where something went wrong, and when it is stopped", () => {
    const { stage, replay } = played();
    stage.clock.pass(800);
    stage.loop.down();
    replay.look();
    expect(replay.script).toBeNull();
    replay.start(SCRIPT);
    replay.stop();
    stage.clock.pass(5_000);
    expect(stage.loop.pending.text).toBe("Tell me.");
  });
});

describe("transcripts", () => {
  it("of one's own words come one by one", () => {
    expect(ownWords("  How far? ", 120).turns[0]?.partials).toEqual([
      { at: 0, text: "How" },
      { at: 500, text: "How far?" },
    ]);
    expect(ownWords("  ", 120).turns).toEqual([]);
  });

  it("have a revision, a pause and a turn that breaks in", () => {
    const turns = SCRIPTS.flatMap((script) => script.turns);
    const pairs = turns.flatMap(({ partials }) => partials.slice(1).map((after, i) => [partials[i], after] as const));
    expect(pairs.every(([before, after]) => (before?.at ?? 0) < after.at)).toBe(true);
    expect(pairs.some(([before, after]) => !after.text.startsWith(before?.text ?? ""))).toBe(true);
    expect(pairs.some(([before, after]) => after.at - (before?.at ?? 0) > 1_000)).toBe(true);
    expect(turns.some(({ breaksInAfter }) => breaksInAfter !== null)).toBe(true);
  });
});
