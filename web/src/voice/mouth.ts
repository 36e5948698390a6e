// A voice out of speakers: clauses wait here, and each is given to the speaker that is chosen when its turn comes.

import type { Progress, Speaker, Voice } from "./speech";

export class Mouth implements Voice {
  readonly #choose: () => Speaker;
  #speaker: Speaker | null = null; // while a clause is spoken
  #waiting: { clause: string; progress: Progress }[] = [];

  constructor(choose: () => Speaker) {
    this.#choose = choose;
  }

  speak(clause: string, progress: Progress): void {
    this.#waiting.push({ clause, progress });
    if (this.#speaker === null) this.#next();
  }

  stop(): void {
    this.#waiting = [];
    this.#speaker?.hush();
    this.#speaker = null;
  }

  #next(): void {
    const next = this.#waiting.shift();
    this.#speaker = next ? this.#choose() : null;
    if (!next) return;
    const { clause, progress } = next;
    this.#speaker?.say(clause, {
      started: () => progress.started(),
      word: (codePoints) => progress.word(codePoints),
      finished: () => {
        this.#next(); // first, so that the sound has no gap
        progress.finished();
      },
    });
  }
}
