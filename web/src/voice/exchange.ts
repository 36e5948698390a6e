// What both sides have said: the conversation, the turn that is spoken, and the newest reply. The page keeps it, and the
// session is told.

import type { ServerEvent } from "../wire/events";
import { Pending } from "./pending";
import type { Ports } from "./ports";
import { Conversation } from "./record";
import { Reply } from "./reply";
import type { Asking, Session } from "./session";
import type { Turn } from "./turn";

const KEPT_TURNS = 20;

export class Exchange {
  readonly conversation = new Conversation();
  readonly pending: Pending;
  /** Turns that were asked, newest last, a bounded number of them. */
  readonly turns: Turn[] = [];
  /** The newest reply; null before the first. */
  reply: Reply | null = null;
  readonly #ports: Pick<Ports, "voice" | "clock">;
  readonly #session: Session;

  constructor(ports: Pick<Ports, "voice" | "clock">, session: Session) {
    this.#ports = ports;
    this.#session = session;
    this.pending = new Pending(ports.clock);
  }

  /** The words of the turn are asked. onProgress: the reply was spoken further. */
  ask(asking: Asking, onProgress: () => void): void {
    this.#session.ask(asking);
    const { words, turn } = this.pending.commit();
    this.conversation.said(words);
    this.turns.push(turn);
    if (this.turns.length > KEPT_TURNS) this.turns.shift();
    this.reply = new Reply(turn, this.#ports.voice, this.#ports.clock, onProgress);
  }

  /** What a session says of the turn that is spoken and, where one runs, of the text of the reply. */
  receive(event: ServerEvent, running: boolean): void {
    switch (event.type) {
      case "input_text.committed":
      case "input_text.cleared":
        this.conversation.named(event.item_id);
        this.pending.answered();
        break;
      case "x_input_text.prefilled":
        this.pending.prefilled(event);
        break;
      case "response.output_item.added":
        if (running && this.reply) this.reply.itemId ??= event.item?.id ?? null;
        break;
      case "response.output_text.delta":
        if (running) this.reply?.push(event.delta ?? "");
        break;
    }
  }

  /** The conversation keeps what was heard of the newest reply. */
  cut(): void {
    const { reply } = this;
    if (reply === null || (reply.heard >= reply.length && reply.length > 0)) return;
    if (reply.length > 0) reply.turn.cut = { length: reply.length, heard: reply.heard };
    this.conversation.cut(reply.heardText);
    if (this.#session.linked && reply.itemId !== null) this.#session.cut(reply.itemId, reply.heard);
  }

  /** The turn was not answered: its words come back, to be gone on with. */
  withdraw(): void {
    this.pending.takeBack(this.conversation.takeBack());
    this.turns.pop();
    this.reply = null;
  }

  /** A session that knows nothing is given all of it. */
  putBack(): void {
    this.#session.send(...this.conversation.putBack(), ...this.pending.putBack());
  }

  /** A new conversation. */
  clear(): void {
    this.reply = null;
    this.conversation.clear();
    this.pending.clear();
    this.turns.length = 0;
  }
}
