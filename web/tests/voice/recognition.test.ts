import { describe, expect, it } from "vitest";
import { BrowserRecognition, type Recogniser, type Result, recogniserOf } from "../../src/voice/recognition";
import { HandClock } from "./fakes";

class HandRecogniser implements Recogniser {
  lang = "";
  continuous = false;
  interimResults = false;
  onresult: Recogniser["onresult"] = null;
  onerror: Recogniser["onerror"] = null;
  onend: Recogniser["onend"] = null;
  calls: string[] = [];

  start(): void {
    this.calls.push("start");
  }

  stop(): void {
    this.calls.push("stop");
  }

  abort(): void {
    this.calls.push("abort");
  }

  /** Phrases of this session; all but the last are final, and the last if it ends with a full stop. */
  hear(...phrases: string[]): void {
    const results = phrases.map((transcript, i): Result => {
      const isFinal = i < phrases.length - 1 || transcript.endsWith(".");
      return Object.assign([{ transcript }], { isFinal });
    });
    this.onresult?.({ results });
  }
}

function listening(language = "en-US") {
  const clock = new HandClock();
  const made: HandRecogniser[] = [];
  const log: string[] = [];
  const make = () => {
    const recogniser = new HandRecogniser();
    made.push(recogniser);
    return recogniser;
  };
  const recognition = new BrowserRecognition(make, () => clock.now());
  recognition.begin(language, {
    onWords: (text, settled) => log.push(`${text}${settled ? " !" : ""}`),
    onEnd: () => log.push("end"),
    onProblem: (sentence) => log.push(sentence),
  });
  const newest = () => made.at(-1) as HandRecogniser;
  return { recognition, clock, made, log, newest };
}

describe("BrowserRecognition", () => {
  it("asks for words that are not certain yet, in the language", () => {
    const { newest } = listening("de-DE");
    const { lang, continuous, interimResults, calls } = newest();
    expect({ lang, continuous, interimResults, calls }).toEqual({
      lang: "de-DE",
      continuous: true,
      interimResults: true,
      calls: ["start"],
    });
  });

  it("joins the phrases of a turn", () => {
    const { log, newest } = listening();
    newest().hear("how");
    newest().hear("How far.", " is");
    newest().hear("How far.", " Is the moon.");
    expect(log).toEqual(["how", "How far. is", "How far. Is the moon. !"]);
  });

  it("starts from nothing for a new turn", () => {
    const { recognition, log, newest } = listening();
    newest().hear("One.");
    recognition.turn();
    newest().hear("One.");
    newest().hear("One.", "two");
    expect(log).toEqual(["One. !", "two"]);
  });

  it("goes on when the browser ends a session, and keeps what the turn has", () => {
    const { clock, made, log, newest } = listening();
    newest().hear("One.");
    clock.pass(60_000);
    newest().onerror?.({ error: "no-speech" });
    newest().onend?.();
    expect(made).toHaveLength(2);
    newest().hear("two");
    expect(log).toEqual(["One. !", "One. two"]);
    made[0]?.hear("late");
    expect(log).toHaveLength(2);
  });

  it("hands over the last words before it ends", () => {
    const { recognition, log, newest } = listening();
    recognition.end();
    expect(newest().calls).toEqual(["start", "stop"]);
    newest().hear("Done.");
    newest().onend?.();
    expect(log).toEqual(["Done. !", "end"]);
  });

  it("tells nothing after abort", () => {
    const { recognition, made, log, newest } = listening();
    recognition.abort();
    newest().hear("late");
    newest().onend?.();
    expect(newest().calls).toEqual(["start", "abort"]);
    expect(made).toHaveLength(1);
    expect(log).toEqual([]);
  });

  it.each([
    ["not-allowed", /allow it beside the address/],
    ["audio-capture", /No microphone was found/],
    ["network", /check the network/],
    ["service-not-allowed", /another browser/],
    ["language-not-supported", /choose another/],
    ["bad-grammar", /\(bad-grammar\); press again/],
  ])("says what to do about %s, and ends", (error, sentence) => {
    const { made, log, newest } = listening();
    newest().onerror?.({ error });
    newest().onend?.();
    expect(log).toEqual([expect.stringMatching(sentence), "end"]);
    expect(made).toHaveLength(1);
  });

  it("does not begin for ever where sessions end at once", () => {
    const { made, log, newest } = listening();
    for (let i = 0; i < 10 && log.length === 0; i += 1) newest().onend?.();
    expect(log).toEqual([expect.stringMatching(/again and again/), "end"]);
    expect(made.length).toBeLessThan(10);
  });

  it("is there where the browser has one", () => {
    expect(recogniserOf({})).toBeNull();
    expect(recogniserOf({ webkitSpeechRecognition: HandRecogniser })?.()).toBeInstanceOf(HandRecogniser);
  });

  it("says so where the browser refuses to begin", () => {
    const log: string[] = [];
    const broken = () =>
      Object.assign(new HandRecogniser(), {
        start() {
          throw new Error("InvalidStateError");
        },
      });
    new BrowserRecognition(broken, () => 0).begin("en", {
      onWords: () => {},
      onEnd: () => log.push("end"),
      onProblem: (sentence) => log.push(sentence),
    });
    expect(log).toEqual([expect.stringMatching(/could not begin/), "end"]);
  });
});
