// Speaks without a sound: word after word at a pace, for reading along.

import { codePoints } from "../shell/codepoints";
import type { Clock } from "../wire/clock";
import type { Progress, Speaker } from "./speech";

const MINUTE_MS = 60_000;

/** Where the words of a text begin, in code points; also in writing without spaces. */
export function wordStarts(text: string): number[] {
  const segments = [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)];
  return segments
    .filter(({ isWordLike }) => isWordLike)
    .map(({ index }) => index)
    .map((index) => codePoints(text.slice(0, index)));
}

export class Reader implements Speaker {
  readonly #clock: Clock;
  readonly #pace: () => number;
  #cancel = () => {};

  /** pace: words per minute, asked for at each word. */
  constructor(clock: Clock, pace: () => number) {
    this.#clock = clock;
    this.#pace = pace;
  }

  say(clause: string, progress: Progress): void {
    progress.started();
    this.#read(wordStarts(clause), progress);
  }

  hush(): void {
    this.#cancel();
  }

  #read([start, ...rest]: number[], progress: Progress): void {
    if (start === undefined) {
      progress.finished();
      return;
    }
    progress.word(start);
    this.#cancel = this.#clock.after(MINUTE_MS / this.#pace(), () => this.#read(rest, progress));
  }
}
