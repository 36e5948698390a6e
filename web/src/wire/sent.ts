// Which of our events an error of the server is about.

import type { ClientEvent } from "./events";

/** The events of one session that were for something that an error would change. */
export class Sent<Purpose extends string> {
  readonly #prefix: string;
  readonly #purposes = new Map<string, Purpose>(); // by event id
  #serial = 0;

  /** prefix: of the ids, which differ in all sessions of this object. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The event with an id. purpose: what it is for; left out: an error about it is nobody's. */
  named(event: ClientEvent, purpose?: Purpose): ClientEvent {
    this.#serial += 1;
    const id = `${this.#prefix}_${this.#serial}`;
    if (purpose !== undefined) this.#purposes.set(id, purpose);
    return { ...event, event_id: id };
  }

  /** What the event of this id was for; null: it is none of ours, or the error names none. */
  purpose(id: string | null | undefined): Purpose | null {
    return (id && this.#purposes.get(id)) || null;
  }

  /** What was for `before` is for `after` from now on. */
  become(before: Purpose, after: Purpose): void {
    for (const [id, purpose] of this.#purposes) if (purpose === before) this.#purposes.set(id, after);
  }

  /** Errors about events for `purpose` that still come are nobody's. */
  settle(purpose: Purpose): void {
    for (const [id, known] of this.#purposes) if (known === purpose) this.#purposes.delete(id);
  }

  /** The same for all. */
  clear(): void {
    this.#purposes.clear();
  }
}
