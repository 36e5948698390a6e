import { describe, expect, it } from "vitest";
import { Microphone } from "../../src/voice/microphone";
import type { Ears, Recognition } from "../../src/voice/speech";
import { Stage } from "./fakes";

class HandRecognition implements Recognition {
  ears: Ears | null = null;
  calls: string[] = [];

  begin(language: string, ears: Ears): void {
    this.calls.push(`begin ${language}`);
    this.ears = ears;
  }

  turn(): void {
    this.calls.push("turn");
  }

  end(): void {
    this.calls.push("end");
  }

  abort(): void {
    this.calls.push("abort");
  }
}

function set() {
  const stage = new Stage().up();
  const recognition = new HandRecognition();
  return { stage, recognition, microphone: new Microphone(stage.loop, recognition, stage.clock) };
}

describe("push to talk", () => {
  it("hears while it is held, and ends the turn with the last words", () => {
    const { stage, recognition, microphone } = set();
    expect(recognition.calls).toEqual([]);
    microphone.press("en-GB");
    microphone.press("en-GB");
    expect(stage.loop.state).toBe("listening");
    recognition.ears?.onWords("How far", false);
    stage.clock.pass(10_000); // silence means nothing while the button is down
    microphone.release();
    expect(stage.types()).toEqual(["input_text.append"]);
    recognition.ears?.onWords("How far?", true);
    recognition.ears?.onEnd();
    expect(stage.types()).toEqual(["input_text.append", "input_text.commit", "response.create"]);
    expect(recognition.calls).toEqual(["begin en-GB", "end"]);
    expect(microphone.listening).toBe("off");
  });

  it("silences the reply before a word is said", () => {
    const { stage, microphone } = set();
    stage.ask().say("It is far.", 10);
    microphone.press("en");
    expect(stage.voice.queue).toEqual([]);
    expect(stage.loop.state).toBe("interrupted");
  });

  it("does not wait for ever for last words", () => {
    const { stage, recognition, microphone } = set();
    microphone.press("en");
    recognition.ears?.onWords("Hello", false);
    microphone.release();
    stage.clock.pass(2_000);
    expect(stage.loop.state).toBe("thinking");
    expect(recognition.calls.at(-1)).toBe("abort");
  });

  it("goes on with words that were kept", () => {
    const { stage, recognition, microphone } = set();
    stage.ask("How far").loop.down();
    microphone.press("en");
    recognition.ears?.onWords("is it?", true);
    expect(stage.loop.pending.text).toBe("How far is it?");
  });
});

describe("hands-free", () => {
  it.each([
    [true, 700],
    [false, 1_500],
  ])("ends the turn after a silence (settled words: %s)", (settled, ms) => {
    const { stage, recognition, microphone } = set();
    microphone.free(true, "en");
    recognition.ears?.onWords("Hello", settled);
    stage.clock.pass(ms - 1);
    recognition.ears?.onWords("Hello there", settled);
    stage.clock.pass(ms - 1);
    expect(stage.loop.state).toBe("listening");
    stage.clock.pass(1);
    expect(stage.loop.state).toBe("thinking");
    expect(recognition.calls).toEqual(["begin en", "turn"]);
    stage.say("Hi.", 3).done();
    stage.voice.finish();
    expect(stage.loop.state).toBe("listening");
  });

  it("says what is wrong, and is off then", () => {
    const { stage, recognition, microphone } = set();
    microphone.free(true, "en");
    recognition.ears?.onProblem("No microphone was found; connect one, then press again.");
    recognition.ears?.onEnd();
    expect(stage.loop.notice).toMatch(/No microphone/);
    expect([microphone.listening, stage.loop.state]).toEqual(["off", "idle"]);
  });

  it("is switched off at once, and keeps the words", () => {
    const { stage, recognition, microphone } = set();
    microphone.free(true, "en");
    recognition.ears?.onWords("Hello", true);
    microphone.free(false, "en");
    stage.clock.pass(5_000);
    expect(recognition.calls.at(-1)).toBe("abort");
    expect([stage.loop.state, stage.loop.pending.text]).toEqual(["listening", "Hello"]);
  });

  it("forgets words that are not wanted", () => {
    const { stage, recognition, microphone } = set();
    microphone.free(true, "en");
    recognition.ears?.onWords("Hello", true);
    stage.take();
    microphone.forget();
    stage.loop.forget();
    stage.clock.pass(5_000);
    expect(recognition.calls.at(-1)).toBe("turn");
    expect(stage.types()).toEqual(["input_text.clear"]);
    expect([stage.loop.pending.text, stage.loop.pending.turn]).toEqual(["", null]);
  });
});
