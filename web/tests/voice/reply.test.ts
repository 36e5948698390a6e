import { describe, expect, it } from "vitest";
import { Reply } from "../../src/voice/reply";
import { Turn } from "../../src/voice/turn";
import { HandClock, HandVoice } from "./fakes";

const TEXT = "🌙 It is far. Very far.";

function begun() {
  const clock = new HandClock();
  const voice = new HandVoice();
  const turn = new Turn(0);
  const progress = { count: 0 };
  const reply = new Reply(turn, voice, clock, () => {
    progress.count += 1;
  });
  return { clock, voice, turn, progress, reply };
}

describe("Reply", () => {
  it("speaks each clause once, cut by code points, and what the server left out at the end", () => {
    const { reply, voice } = begun();
    reply.push(TEXT.slice(0, 5));
    reply.push(TEXT.slice(5));
    expect(reply.length).toBe([...TEXT].length);
    reply.clause(12);
    reply.clause(12);
    reply.clause(4); // goes back, which a server does not
    expect(voice.said).toEqual(["🌙 It is far."]);
    reply.finish();
    expect(voice.said).toEqual(["🌙 It is far.", " Very far."]);
  });

  it("does not speak marks alone", () => {
    const { reply, voice } = begun();
    reply.push("Far. …");
    reply.clause(4);
    reply.finish();
    expect(voice.said).toEqual(["Far."]);
    voice.finish();
    expect(reply.heardText).toBe("Far. …"); // they have no sound
    expect(reply.over).toBe(true);
  });

  it("is heard as far as words were spoken, without the blank before the next one", () => {
    const { reply, voice, progress } = begun();
    reply.push(TEXT);
    reply.clause(12);
    voice.word(5);
    expect(reply.heardText).toBe("🌙 It");
    voice.word(2); // a voice that goes back
    expect(reply.heardText).toBe("🌙 It");
    voice.finish();
    expect(reply.heardText).toBe("🌙 It is far.");
    expect(progress.count).toBeGreaterThan(2);
  });

  it("is over when all of it has come and was spoken", () => {
    const { reply, voice } = begun();
    reply.push(TEXT);
    reply.clause(12);
    voice.finish();
    expect(reply.over).toBe(false);
    reply.finish();
    expect(reply.over).toBe(false);
    voice.finish();
    expect([reply.over, reply.heard]).toEqual([true, reply.length]);
  });

  it("is heard at once where there is nothing to speak", () => {
    const { reply, voice } = begun();
    reply.push(" …");
    reply.finish();
    expect([reply.over, reply.heardText, voice.said]).toEqual([true, " …", []]);
  });

  it("speaks no more once it is stopped, and is heard no further", () => {
    const { reply, voice } = begun();
    reply.push(TEXT);
    reply.clause(12);
    voice.word(5);
    reply.stop();
    reply.push(" And so on.");
    reply.clause(reply.length);
    reply.finish();
    expect([voice.stops, voice.said.length]).toEqual([1, 1]);
    expect(reply.heardText).toBe("🌙 It");
  });

  it("notes when its first text, clause and sound came", () => {
    const { reply, voice, clock, turn } = begun();
    clock.pass(10);
    reply.push("It is");
    clock.pass(10);
    reply.push(" far. Very far.");
    reply.clause(10);
    clock.pass(10);
    voice.finish();
    clock.pass(10);
    reply.finish();
    voice.finish();
    expect([turn.firstText, turn.firstClause, turn.firstSound]).toEqual([10, 20, 30]);
  });
});
