// The voice loop without I/O: what the person says, what the voice has spoken and what the server tells come in; events
// for one realtime session and clauses for the voice go out.
//
//   idle ── words ──> listening ── endTurn ──> thinking ── a clause ──> speaking ── all heard ──> idle or listening
//                         ^                        └── words ──┬── words ──┘
//                         └──── cut to what was heard ── interrupted, until response.done
// The page owns the conversation (Exchange): a lost socket loses nothing but the reply that was running.

import { advice } from "../wire/errors";
import type { Fault, ResponseBody, ServerEvent } from "../wire/events";
import { Exchange } from "./exchange";
import type { Pending } from "./pending";
import type { Ports, State } from "./ports";
import type { Conversation } from "./record";
import type { Reply } from "./reply";
import { Session } from "./session";
import type { Turn } from "./turn";

const CANCEL_PATIENCE_MS = 5_000; // a cancel takes one verify step; after this the session is left behind

export class VoiceLoop {
  /** A sentence for the person; "" for none. */
  notice = "";
  readonly #ports: Ports;
  readonly #session: Session;
  readonly #exchange: Exchange;
  #phase: "thinking" | "speaking" | "interrupted" | null = null;
  #attentive = false;
  #running = false; // between response.create and response.done
  #askLater = false; // the turn has ended, and something else has to come first
  #endPatience = () => {};

  constructor(ports: Ports) {
    this.#ports = ports;
    this.#session = new Session(ports);
    this.#exchange = new Exchange(ports, this.#session);
  }

  get conversation(): Conversation {
    return this.#exchange.conversation;
  }

  get pending(): Pending {
    return this.#exchange.pending;
  }

  get turns(): readonly Turn[] {
    return this.#exchange.turns;
  }

  get reply(): Reply | null {
    return this.#exchange.reply;
  }

  /** The server owes the end of a reply. */
  get running(): boolean {
    return this.#running;
  }

  get state(): State {
    return this.#phase ?? (this.#attentive || this.pending.text !== "" ? "listening" : "idle");
  }

  /** Somebody begins to listen to the person, or nobody does any more. */
  attend(on: boolean): void {
    this.#attentive = on;
    if (on) this.pending.seal();
    this.#ports.changed();
  }

  /** words: all of this turn so far, as the recogniser has it now. Words while a reply runs or is spoken break in. */
  hear(words: string): void {
    if (words.trim() === "" && this.pending.text === "") return;
    this.#breakIn();
    if (this.pending.turn === null && this.#session.linked) this.#session.configure(this.#ports.asking());
    this.#session.send(...this.pending.hear(words, this.#session.linked));
    this.#ports.changed();
  }

  /** The person has finished the turn: the model answers. Without words nothing happens. */
  endTurn(): void {
    if (this.pending.empty || this.#askLater) return;
    this.pending.end();
    if (this.#session.linked && this.#phase === null) this.#ask();
    else {
      this.#askLater = true;
      this.#phase ??= "thinking";
    }
    this.#ports.changed();
  }

  /** The person wants silence, without saying a word. */
  interrupt(): void {
    this.#breakIn();
    this.#ports.changed();
  }

  /** The person takes back the words of a turn that is still spoken. */
  forget(): void {
    this.#session.send(...this.pending.forget(this.#session.linked));
    this.#ports.changed();
  }

  /** A sentence for the person; "" takes the last one away. */
  tell(sentence: string): void {
    this.notice = sentence;
    this.#ports.changed();
  }

  /** A new conversation. */
  clear(): void {
    this.close();
    this.#exchange.clear();
    this.notice = "";
    this.#phase = null;
    this.#askLater = false;
    this.#renew();
    this.#ports.changed();
  }

  /** Nothing is spoken any more, and nothing waited for. */
  close(): void {
    this.reply?.stop();
    this.#endPatience();
  }

  /** The socket is gone. */
  down(): void {
    this.#unlink();
    if (this.#running) this.#breakOff("The connection was lost");
    this.#ports.changed();
  }

  receive(event: ServerEvent): void {
    switch (event.type) {
      case "session.created":
        this.#up();
        break;
      case "x_response.clause":
        if (!this.#running || this.#phase === "interrupted") break;
        this.#phase = "speaking";
        this.reply?.clause(event.end ?? 0);
        break;
      case "response.done":
        if (this.#running && this.reply) this.#done(this.reply, event.response ?? {});
        break;
      case "error":
        this.#fault(event.error ?? {});
        break;
      default:
        this.#exchange.receive(event, this.#running);
    }
    this.#ports.changed();
  }

  #ask(): void {
    this.#askLater = false;
    this.#phase = null;
    const asking = this.#ports.asking();
    if (typeof asking === "string") {
      this.notice = asking;
      return;
    }
    this.notice = "";
    this.#exchange.ask(asking, () => {
      this.#settle();
      this.#ports.changed();
    });
    this.#running = true;
    this.#phase = "thinking";
  }

  /** The reply is over once it was heard to its end. */
  #settle(): void {
    if (this.#phase === "speaking" && this.reply?.over) this.#phase = null;
  }

  #done(reply: Reply, { status, status_details: details, usage }: ResponseBody): void {
    const failed = status === "failed";
    const why = advice(details?.error ?? {}, "The server could not finish the reply; say it again.");
    this.#running = false;
    reply.turn.finish(usage);
    if (failed && !reply.text) {
      this.#renew(); // so that the server does not keep the words, which come back
      this.#withdraw(why);
      return;
    }
    if (failed) this.notice = why;
    this.conversation.answered(reply);
    if (this.#phase === "interrupted") {
      reply.turn.cancelled = this.#ports.clock.now();
      this.#exchange.cut();
      this.#free();
      return;
    }
    this.#phase = "speaking";
    reply.finish();
    this.#settle();
    if (reply.text) return;
    this.notice ||= "The model had nothing to say; go on, or ask in other words.";
    this.#exchange.cut();
  }

  /** The person speaks or pressed: ends what is made or spoken, and a turn that was not asked yet goes on. */
  #breakIn(): void {
    if (this.#askLater && this.#phase === "thinking") this.#phase = null;
    this.#askLater = false;
    if (this.#phase !== "thinking" && this.#phase !== "speaking") return;
    if (this.reply) this.reply.turn.brokeIn = this.#ports.clock.now();
    this.reply?.stop();
    if (!this.#running) {
      this.#phase = null;
      this.#exchange.cut();
      return;
    }
    this.#phase = "interrupted";
    this.#session.cancel();
    this.#endPatience = this.#ports.clock.after(CANCEL_PATIENCE_MS, () => {
      this.#unlink();
      this.#breakOff("The server did not confirm that the reply ended");
      this.#renew();
      this.#ports.changed();
    });
  }

  /** Nothing runs any more: a turn that waited for that is asked. */
  #free(): void {
    this.#endPatience();
    this.#phase = this.#askLater ? "thinking" : null;
    if (this.#askLater && this.#session.linked) this.#ask();
  }

  #up(): void {
    this.#unlink();
    this.#session.linked = true;
    this.#session.configure(this.#ports.asking());
    this.#exchange.putBack();
    if (this.#askLater) this.#ask();
  }

  #unlink(): void {
    this.#session.lost();
    this.pending.lost();
    this.#endPatience();
  }

  #renew(): void {
    this.#unlink();
    this.#running = false;
    this.#session.renew();
  }

  /** The running reply's session is gone. what: why, as a clause. */
  #breakOff(what: string): void {
    const { reply } = this;
    reply?.stop();
    if (!reply?.text) {
      this.#withdraw(`${what} before the reply began; your words are kept: go on, or end the turn again.`);
      return;
    }
    this.#running = false;
    this.notice = `${what} during the reply; what you had heard of it is kept. Go on.`;
    this.conversation.answered(reply);
    this.#exchange.cut();
    this.#free();
  }

  /** The turn was not answered: its words come back, to be gone on with. */
  #withdraw(sentence: string): void {
    this.#running = false;
    this.notice = sentence;
    this.#exchange.withdraw();
    this.#free();
  }

  #fault(fault: Fault): void {
    const subject = this.#session.subject(fault.event_id);
    if (subject === "cancel") return; // the reply had just ended
    const sentence = advice(fault, "The server reported an error without saying which; try again.");
    if (subject === "ask" && this.#running) {
      this.#renew(); // the session may hold the words already
      this.#withdraw(sentence);
    } else this.notice = sentence;
  }
}
