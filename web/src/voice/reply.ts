// One reply: its text as it comes, its clauses as they are spoken, and how much of it was heard.

import { codePoints, firstOf, indexBehind } from "../shell/codepoints";
import type { Clock } from "../wire/clock";
import type { Voice } from "./speech";
import type { Turn } from "./turn";

const SPEAKABLE = /[\p{L}\p{N}]/u;

export class Reply {
  /** The server's name for it; null until it told one. */
  itemId: string | null = null;
  text = "";
  /** Code points of `text`. */
  length = 0;
  /** Code points that were heard: clauses spoken to their end, and the words of the running one. */
  heard = 0;
  #whole = false;
  #stopped = false;
  #queued = 0; // code points given to the voice
  #queuedIndex = 0; // the same in UTF-16 units
  #waiting = 0; // clauses not spoken to their end
  /** What it answers, whose times it notes. */
  readonly turn: Turn;
  readonly #voice: Voice;
  readonly #clock: Clock;
  readonly #onProgress: () => void;

  /** onProgress: the voice went on. */
  constructor(turn: Turn, voice: Voice, clock: Clock, onProgress: () => void) {
    this.turn = turn;
    this.#voice = voice;
    this.#clock = clock;
    this.#onProgress = onProgress;
  }

  get heardText(): string {
    return firstOf(this.text, this.heard);
  }

  /** No more will come, and all of it was heard. */
  get over(): boolean {
    return this.#whole && this.#waiting === 0;
  }

  push(delta: string): void {
    this.turn.firstText ??= this.#clock.now();
    this.text += delta;
    this.length += codePoints(delta);
  }

  /** The text is whole up to code point `end`: speaks what is new of it. What a server left out is spoken too. */
  clause(end: number): void {
    if (this.#stopped || end <= this.#queued) return;
    this.turn.firstClause ??= this.#clock.now();
    const from = this.#queued;
    const rest = this.text.slice(this.#queuedIndex);
    const clause = rest.slice(0, indexBehind(rest, end - from));
    this.#queuedIndex += clause.length;
    this.#queued += codePoints(clause);
    this.#waiting += 1;
    const to = this.#queued;
    this.#voice.speak(clause, {
      started: () => {
        this.turn.firstSound ??= this.#clock.now();
        this.#onProgress();
      },
      word: (spoken) => this.#heardTo(from + codePoints(firstOf(clause, spoken).trimEnd())),
      finished: () => {
        this.#waiting -= 1;
        this.#heardTo(this.over ? this.length : to); // marks at the very end have no sound
      },
    });
  }

  /** No more text will come. */
  finish(): void {
    if (SPEAKABLE.test(this.text.slice(this.#queuedIndex))) this.clause(this.length);
    this.#whole = true;
    if (this.#waiting === 0 && !this.#stopped) this.heard = this.length;
  }

  /** The person has heard enough; text may still come, and is not spoken. */
  stop(): void {
    this.#stopped = true;
    this.#waiting = 0;
    this.#voice.stop();
  }

  #heardTo(place: number): void {
    this.heard = Math.max(this.heard, place);
    this.#onProgress();
  }
}
