import { beforeEach, describe, expect, it, vi } from "vitest";
import { Reader } from "../../src/voice/reader";
import { BrowserSynthesis } from "../../src/voice/synthesis";
import { HandClock } from "./fakes";

class Utterance {
  voice: SpeechSynthesisVoice | null = null;
  lang = "";
  rate = 0;
  onstart: (() => void) | null = null;
  onboundary: ((event: { name: string; charIndex: number }) => void) | null = null;
  onend: (() => void) | null = null;
  onerror: (() => void) | null = null;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

function set(choice = { voice: "", rate: 1.2, language: "en-US" }) {
  const clock = new HandClock();
  const spoken: Utterance[] = [];
  const browser = {
    cancels: 0,
    getVoices: () => [{ voiceURI: "urn:anna", lang: "de-DE" }],
    speak: (utterance: Utterance) => spoken.push(utterance),
    cancel() {
      this.cancels += 1;
      spoken.at(-1)?.onerror?.(); // as browsers tell it
    },
  };
  const problems: string[] = [];
  const synthesis = new BrowserSynthesis(
    browser as unknown as SpeechSynthesis,
    clock,
    new Reader(clock, () => 60),
    () => choice,
    (sentence) => problems.push(sentence),
  );
  const log: string[] = [];
  const progress = {
    started: () => log.push("starts"),
    word: (codePoints: number) => log.push(`${codePoints}`),
    finished: () => log.push("ends"),
  };
  return { clock, browser, spoken, synthesis, problems, log, progress };
}

beforeEach(() => {
  vi.stubGlobal("SpeechSynthesisUtterance", Utterance);
  return () => vi.unstubAllGlobals();
});

describe("BrowserSynthesis", () => {
  it("tells how far it is, in code points", () => {
    const { spoken, synthesis, log, progress } = set();
    synthesis.say("🌙 is far.", progress);
    const [utterance] = spoken;
    utterance?.onstart?.();
    utterance?.onboundary?.({ name: "sentence", charIndex: 0 });
    utterance?.onboundary?.({ name: "word", charIndex: 3 });
    utterance?.onend?.();
    expect(log).toEqual(["starts", "2", "ends"]);
    expect([utterance?.lang, utterance?.rate]).toEqual(["en-US", 1.2]);
  });

  it("speaks with the chosen voice in that voice's language", () => {
    const { spoken, synthesis, progress } = set({ voice: "urn:anna", rate: 1, language: "en-US" });
    synthesis.say("Hallo.", progress);
    expect([spoken[0]?.voice?.voiceURI, spoken[0]?.lang]).toEqual(["urn:anna", "de-DE"]);
  });

  it("is silent at once, and does not take that for a fault", () => {
    const { clock, browser, spoken, synthesis, problems, log, progress } = set();
    synthesis.say("One two.", progress);
    spoken[0]?.onstart?.();
    synthesis.hush();
    spoken[0]?.onend?.();
    clock.pass(60_000);
    expect([browser.cancels, problems, log]).toEqual([1, [], ["starts"]]);
  });

  it.each([
    ["an error", (utterance: Utterance) => utterance.onerror?.()],
    ["a voice that never begins", () => {}],
    ["a voice that never ends", (utterance: Utterance) => utterance.onstart?.()],
  ])("is read along instead after %s", (_, happens) => {
    const { clock, spoken, synthesis, problems, log, progress } = set();
    synthesis.say("One", progress);
    happens(spoken[0] as Utterance);
    clock.pass(12_000);
    expect(problems).toHaveLength(1);
    expect(log.slice(-3)).toEqual(["starts", "0", "ends"]);
    spoken[0]?.onend?.(); // too late to count
    expect(log.filter((line) => line === "ends")).toHaveLength(1);
  });
});
