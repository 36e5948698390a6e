// What the loop says on the realtime session, and which of the server's errors answer what.

import type { ClientEvent } from "../wire/events";

/** What replies are asked for with. body: fields of `response.create`. */
export interface Asking {
  instructions: string;
  body: Record<string, unknown>;
}

export interface Outlet {
  /** May drop the event while no session is there. */
  send(event: ClientEvent): void;
  /** A new session at once; nothing of the old one is told any more. */
  renew(): void;
}

export class Session {
  /** There is a session, and it has everything that was said. */
  linked = false;
  readonly #outlet: Outlet;
  #instructions: string | null = null; // what the session has
  #serial = 0;
  readonly #ids = { ask: new Set<string>(), cancel: new Set<string>() };

  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  send(...events: ClientEvent[]): void {
    for (const event of events) this.#send(event);
  }

  /** A sentence about a wrong setting changes nothing here: it is told when the turn ends. */
  configure(asking: Asking | string): void {
    if (typeof asking === "string" || asking.instructions === this.#instructions) return;
    const { instructions } = asking;
    this.#instructions = instructions;
    this.send({ type: "session.update", session: { type: "realtime", output_modalities: ["text"], instructions } });
  }

  /** The pending words become the person's turn, and the model answers in clauses. */
  ask(asking: Asking): void {
    this.#ids.ask.clear();
    this.#ids.cancel.clear();
    this.configure(asking);
    this.#send({ type: "input_text.commit" }, "ask");
    this.#send({ type: "response.create", response: { ...asking.body, voice: { clauses: true } } }, "ask");
  }

  cancel(): void {
    this.#send({ type: "response.cancel" }, "cancel");
  }

  /** The conversation keeps the first `heard` code points of a reply; one of which nothing was heard was never said. */
  cut(itemId: string, heard: number): void {
    if (heard === 0) this.send({ type: "conversation.item.delete", item_id: itemId });
    else this.send({ type: "conversation.item.truncate", item_id: itemId, content_index: 0, x_text_end: heard });
  }

  /** What an error about the event of this id is about; null for anything else. */
  subject(eventId: string | null | undefined): "ask" | "cancel" | null {
    if (!eventId) return null;
    return this.#ids.ask.has(eventId) ? "ask" : this.#ids.cancel.has(eventId) ? "cancel" : null;
  }

  lost(): void {
    this.linked = false;
    this.#instructions = null;
  }

  renew(): void {
    this.lost();
    this.#outlet.renew();
  }

  #send(event: ClientEvent, subject?: "ask" | "cancel"): void {
    this.#serial += 1;
    const id = `voice_${this.#serial}`;
    if (subject) this.#ids[subject].add(id);
    this.#outlet.send({ ...event, event_id: id });
  }
}
