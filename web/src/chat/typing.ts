// The person's text while it is still written: the session holds a copy, so that its prompt is computed ahead.

import type { ClientEvent } from "../wire/events";

const LONGEST = 100_000; // characters; longer texts are pasted and not typed, and are sent once

export class Typing {
  #held = ""; // what the session has as pending text, as far as is known
  #known = true; // false: events may have been lost on the way
  #refused = false;
  #unanswered = 0; // clears and commits; what is told before their answers is about a former text

  /** The session is new and holds nothing. */
  reset(): void {
    this.#empty();
    this.#unanswered = 0;
  }

  /** What the session holds is not known any more: a socket broke. */
  doubt(): void {
    this.#known = false;
    this.#unanswered = 0;
  }

  /** The session did what a clear or a commit asked for. */
  answered(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
  }

  /** Whether what the session tells now is about the text it was sent last. */
  get current(): boolean {
    return this.#held !== "" && this.#unanswered === 0;
  }

  /** The session did not take an event: it is not asked again before the turn is sent. */
  refuse(): void {
    this.doubt();
    this.#refused = true;
  }

  /** The events after which the session holds `text`. */
  follow(text: string): ClientEvent[] {
    const wanted = text.length > LONGEST || text.trim() === "" ? "" : text;
    if (this.#refused || (this.#known && wanted === this.#held)) return [];
    const clear = this.#known && wanted.startsWith(this.#held) ? [] : this.#clear();
    const rest = wanted.slice(this.#held.length);
    this.#held = wanted;
    return rest === "" ? clear : [...clear, { type: "input_text.append", text: rest }];
  }

  /** The event that makes the held text a turn; null where the session does not hold exactly `text`. */
  commit(text: string): ClientEvent | null {
    if (!this.#known || this.#held !== text) return null;
    this.#empty();
    this.#unanswered += 1;
    return { type: "input_text.commit" };
  }

  /** The events after which the session holds no text that a later commit could double. */
  drop(): ClientEvent[] {
    return this.#known && this.#held === "" ? [] : this.#clear();
  }

  #clear(): ClientEvent[] {
    this.#empty();
    this.#unanswered += 1;
    return [{ type: "input_text.clear" }];
  }

  #empty(): void {
    this.#held = "";
    this.#known = true;
    this.#refused = false;
  }
}
