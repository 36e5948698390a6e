// From the recogniser to the loop: while a button is held, or hands-free, where a silence ends the turn.

import type { Clock } from "../wire/clock";
import type { VoiceLoop } from "./loop";
import type { Recognition } from "./speech";

const SETTLED_SILENCE_MS = 700; // after words that the recogniser will not revise
const UNSETTLED_SILENCE_MS = 1_500; // it may still be at work on the last ones
const LAST_WORDS_MS = 2_000; // longer than that no recogniser takes to hand over what it heard

/** off: nobody listens. held: the button is. free: hands-free. closing: the last words are still recognised. */
export type Listening = "off" | "held" | "free" | "closing";

export class Microphone {
  listening: Listening = "off";
  readonly #loop: VoiceLoop;
  readonly #recognition: Recognition;
  readonly #clock: Clock;
  #endSilence = () => {};

  constructor(loop: VoiceLoop, recognition: Recognition, clock: Clock) {
    this.#loop = loop;
    this.#recognition = recognition;
    this.#clock = clock;
  }

  /** The button is pressed: whoever speaks is silent, and the person is heard. */
  press(language: string): void {
    if (this.listening === "held" || this.listening === "free") return;
    this.#loop.interrupt();
    this.#begin("held", language);
  }

  /** The button is released: the turn ends once its last words are recognised. */
  release(): void {
    if (this.listening !== "held") return;
    this.listening = "closing";
    this.#endSilence = this.#clock.after(LAST_WORDS_MS, () => {
      this.#recognition.abort();
      this.#finish();
    });
    this.#recognition.end();
    this.#loop.attend(false);
  }

  free(on: boolean, language: string): void {
    if (on) this.#begin("free", language);
    else this.off();
  }

  /** What was heard of this turn is not wanted. */
  forget(): void {
    this.#endSilence();
    this.#recognition.turn();
  }

  /** Nothing is heard any more; words that were, stay. */
  off(): void {
    this.#endSilence();
    if (this.listening === "off") return;
    this.#recognition.abort();
    this.listening = "off";
    this.#loop.attend(false);
  }

  #begin(listening: Listening, language: string): void {
    this.#endSilence();
    this.listening = listening;
    this.#loop.attend(true);
    this.#recognition.begin(language, {
      onWords: (words, settled) => this.#heard(words, settled),
      onEnd: () => this.#finish(),
      onProblem: (sentence) => this.#loop.tell(sentence),
    });
  }

  #heard(words: string, settled: boolean): void {
    this.#loop.hear(words);
    if (this.listening !== "free") return;
    this.#endSilence();
    this.#endSilence = this.#clock.after(settled ? SETTLED_SILENCE_MS : UNSETTLED_SILENCE_MS, () => {
      this.#recognition.turn();
      this.#loop.endTurn();
    });
  }

  #finish(): void {
    this.#endSilence();
    const closing = this.listening === "closing";
    this.listening = "off";
    this.#loop.attend(false);
    if (closing) this.#loop.endTurn();
  }
}
