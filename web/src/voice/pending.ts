// The turn that is still spoken: its words, what the server has of them, and its times. Methods return events to send.

import { indexBehind } from "../shell/codepoints";
import type { Clock } from "../wire/clock";
import type { ClientEvent, ServerEvent } from "../wire/events";
import { Turn } from "./turn";

const joined = (before: string, after: string) =>
  before && after ? before + (/\s$/.test(before) ? "" : " ") + after : before || after;

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

export class Pending {
  /** The turn so far. */
  text = "";
  /** UTF-16 units of `text` that the server has computed ahead. */
  ready = 0;
  /** null before the first word. */
  turn: Turn | null = null;
  readonly #clock: Clock;
  #kept = ""; // words that stand before whatever the recogniser says next
  #sent = "";
  #unanswered = 0; // clears and commits: what is told before their answers is about older words

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get empty(): boolean {
    return this.text.trim() === "";
  }

  /** words: all the recogniser holds for said. linked: whether there is a session that can be told. */
  hear(words: string, linked: boolean): ClientEvent[] {
    const now = this.#clock.now();
    this.turn ??= new Turn(now);
    this.turn.heard = now;
    this.#become(joined(this.#kept, words));
    return linked ? this.#tell() : [];
  }

  /** A recogniser starts from nothing, and what it hears will follow these words. */
  seal(): void {
    this.#kept = this.text;
  }

  /** The person has stopped. */
  end(): void {
    if (this.turn) this.turn.ended = this.#clock.now();
    this.seal();
  }

  /** Words of a turn that was not answered come back, to stand before the others. */
  takeBack(words: string): void {
    this.#kept = joined(words, this.#kept);
    this.#become(joined(words, this.text));
  }

  /** A new session, which knows none of it. */
  putBack(): ClientEvent[] {
    this.lost();
    return this.#tell();
  }

  /** The session is gone. */
  lost(): void {
    this.#sent = "";
    this.#unanswered = 0;
    this.ready = 0;
  }

  /** The words become an item of the conversation; the reply is asked for in the same moment. */
  commit(): { words: string; turn: Turn } {
    const now = this.#clock.now();
    const turn = this.turn ?? new Turn(now);
    turn.ended ??= now;
    turn.asked = now;
    const words = this.text;
    this.text = this.#kept = this.#sent = "";
    this.turn = null;
    this.ready = 0;
    this.#unanswered += 1;
    return { words, turn };
  }

  /** The person takes the words back. */
  forget(linked: boolean): ClientEvent[] {
    this.#kept = "";
    const events = this.hear("", linked);
    this.turn = null;
    return events;
  }

  /** A new conversation. */
  clear(): void {
    this.lost();
    this.text = this.#kept = "";
    this.turn = null;
  }

  /** `input_text.cleared` or `input_text.committed` has come. */
  answered(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
  }

  /**
   * `x_input_text.prefilled`: the server is ready for the first `text_end` code points, but for the last word, which
   * may still become another one. A server that does not say how far leaves the words unmarked.
   */
  prefilled(event: ServerEvent): void {
    if (this.#unanswered > 0 || this.#sent === "") return;
    const known = this.text.slice(0, indexBehind(this.text, event.text_end ?? 0));
    this.ready = Math.max(this.ready, known.search(/\s*\S*$/));
    this.turn?.prefilled(this.#clock.now(), event);
  }

  #become(text: string): void {
    this.ready = Math.min(this.ready, commonLength(this.text, text));
    this.text = text;
  }

  #tell(): ClientEvent[] {
    const events: ClientEvent[] = [];
    if (!this.text.startsWith(this.#sent)) {
      events.push({ type: "input_text.clear" });
      this.#sent = "";
      this.#unanswered += 1;
    }
    if (this.text !== this.#sent) {
      events.push({ type: "input_text.append", text: this.text.slice(this.#sent.length) });
      this.turn?.append(this.#clock.now());
    }
    this.#sent = this.text;
    return events;
  }
}
