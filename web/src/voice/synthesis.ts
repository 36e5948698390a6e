// The browser's own voices. Where they fail, or say nothing at all, the clause is read along instead.

import { codePoints } from "../shell/codepoints";
import type { Clock } from "../wire/clock";
import type { Progress, Speaker } from "./speech";

const BEGIN_PATIENCE_MS = 3_000; // a voice that has not begun by then never does
const SLOWEST_MS = 400; // for one code point: no voice takes as long

export interface VoiceChoice {
  /** A voice's URI; "": the browser's choice. */
  voice: string;
  /** 1: as the voice speaks by itself. */
  rate: number;
  /** Such as "en-US". */
  language: string;
}

export class BrowserSynthesis implements Speaker {
  readonly #synthesis: SpeechSynthesis;
  readonly #clock: Clock;
  readonly #fallback: Speaker;
  readonly #choice: () => VoiceChoice;
  readonly #onProblem: (sentence: string) => void;
  #running: SpeechSynthesisUtterance | null = null;
  #endPatience = () => {};

  constructor(
    synthesis: SpeechSynthesis,
    clock: Clock,
    fallback: Speaker,
    choice: () => VoiceChoice,
    onProblem: (sentence: string) => void,
  ) {
    this.#synthesis = synthesis;
    this.#clock = clock;
    this.#fallback = fallback;
    this.#choice = choice;
    this.#onProblem = onProblem;
  }

  say(clause: string, progress: Progress): void {
    const { voice, rate, language } = this.#choice();
    const utterance = new SpeechSynthesisUtterance(clause);
    utterance.voice = this.#synthesis.getVoices().find(({ voiceURI }) => voiceURI === voice) ?? null;
    utterance.lang = utterance.voice?.lang ?? language;
    utterance.rate = rate;
    const current = (what: () => void) => () => {
      if (utterance === this.#running) what();
    };
    const fail = current(() => {
      this.hush();
      this.#onProblem("The browser's voice does not speak; the reply is shown word by word instead.");
      this.#fallback.say(clause, progress);
    });
    utterance.onstart = current(() => {
      this.#endPatience();
      this.#endPatience = this.#clock.after((codePoints(clause) + 10) * SLOWEST_MS, fail);
      progress.started();
    });
    utterance.onboundary = (event) => {
      const before = clause.slice(0, event.charIndex);
      if (utterance === this.#running && event.name === "word") progress.word(codePoints(before));
    };
    utterance.onend = current(() => {
      this.#endPatience();
      this.#running = null;
      progress.finished();
    });
    utterance.onerror = fail;
    this.#running = utterance;
    this.#endPatience = this.#clock.after(BEGIN_PATIENCE_MS, fail);
    this.#synthesis.speak(utterance);
  }

  hush(): void {
    this.#endPatience();
    this.#running = null; // first: cancelling is told as an error
    this.#synthesis.cancel();
    this.#fallback.hush();
  }
}
