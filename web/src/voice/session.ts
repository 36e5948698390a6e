// What the loop says on the realtime session, and which of the server's errors answer what.

import type { ClientEvent } from "../wire/events";
import { sessionUpdate } from "../wire/requests";
import { Sent } from "../wire/sent";

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
  readonly #sent = new Sent<"ask" | "cancel">("voice"); // for the newest turn

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
    this.send(sessionUpdate(instructions));
  }

  /** The pending words become the person's turn, and the model answers in clauses. */
  ask(asking: Asking): void {
    this.#sent.clear();
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
    return this.#sent.purpose(eventId);
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
    this.#outlet.send(this.#sent.named(event, subject));
  }
}
