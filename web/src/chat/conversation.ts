// The conversation without I/O: what the person does and what the server says come in, effects go out in order.
//
// A session lives as long as its socket, a reply outlives it for a while. The page owns the conversation, so a lost
// socket loses nothing: on session.created a running reply is taken up where it broke off, or else all is said again.

import type { Settings } from "../settings/parse";
import { Trace } from "../spec/trace";
import { advice } from "../wire/errors";
import type { Fault, ResponseBody, ServerEvent } from "../wire/events";
import { sameAgain } from "./again";
import { end, ending, grow, name, THOUGHTS } from "./growth";
import { type Effect, type Notice, type Phase, type Prefilled, send } from "./outcome";
import { tooLong, unsendable } from "./requests";
import { Session } from "./session";
import { begun, LOST, newReply, newTurn, type Running, type Turn, type TurnState } from "./turns";

const ASKS_PER_TURN = 2; // a turn whose socket drops before anything came is asked once more by itself

export class Conversation {
  turns: Turn[] = [];
  phase: Phase = "idle";
  notice: Notice | null = null;
  /** The served model's name, once a session told it. */
  model = "";
  /** null: nothing is computed ahead, or it is not known. */
  prefilled: Prefilled | null = null;
  /** The last reply comes to another tab. */
  elsewhere = false;

  readonly #session = new Session();
  #asks = 0;
  #before: Turn[] | null = null; // the turns before the newest edit, which can be undone

  get busy(): boolean {
    return this.phase !== "idle";
  }

  /** The last turn where it is the model's. */
  get reply(): Turn | null {
    const last = this.turns.at(-1);
    return last?.role === "assistant" && last.unread === null ? last : null;
  }

  /** The person writes, and has written `text` so far. */
  type(text: string, instructions: string): Effect[] {
    if (text.trim() === "") this.prefilled = null;
    const blocked = unsendable("", this) || tooLong(instructions); // nothing was replayed
    return this.#session.linked && !blocked ? send(this.#session.type(text, instructions)) : [];
  }

  /** The person sends `text`. */
  say(text: string, settings: Settings, now: number): Effect[] {
    if (this.busy || text.trim() === "") return [];
    if (this.#refuses(text, this.turns)) return [{ do: "restore", text }];
    this.#before = null;
    this.turns.push(newTurn("user", text));
    const message = this.#session.linked ? send(this.#session.message(text)) : [];
    return [...message, ...this.#begin(settings, now)];
  }

  /** The person's turn `key` becomes `text` and is asked again; what came after it is cut off, and can be had back. */
  edit(key: number, text: string, settings: Settings, now: number): Effect[] {
    const at = this.turns.findIndex((turn) => turn.key === key && turn.role === "user");
    if (this.busy || at < 0 || text.trim() === "" || this.#refuses(text, this.turns.slice(0, at))) return [];
    return this.#replace(at, [newTurn("user", text)], "The turn and what came after it are replaced.", settings, now);
  }

  /** Another reply in place of the last one, or the one that is missing. */
  retry(settings: Settings, now: number): Effect[] {
    const said = this.turns.length - (this.reply ? 1 : 0);
    if (this.busy || this.turns.length === 0 || this.#refuses("", this.turns.slice(0, said))) return [];
    const sentence = ["The reply is replaced.", sameAgain(this.reply, settings)].filter(Boolean).join(" ");
    return this.#replace(said, [], sentence, settings, now);
  }

  /** The turns as they were before the newest edit. */
  undo(): Effect[] {
    return this.#before === null ? [] : this.load(this.#before);
  }

  /** Stops the reply; what has arrived stays. */
  stop(): Effect[] {
    if (this.phase !== "asking" && this.phase !== "replying") return [];
    if (this.#session.linked) {
      this.phase = "stopping";
      return send(this.#session.cancel());
    }
    if (!this.#begun) return this.#withdraw(null);
    this.#end("stopped", "stopped");
    return [];
  }

  /** The server did not confirm a stop in time: leave its session behind. */
  giveUp(): Effect[] {
    if (this.phase !== "stopping") return [];
    const renew = this.#renew();
    this.#end("stopped", "stopped");
    return renew;
  }

  /** Other turns in place of these; none for a new conversation. What runs here is stopped. */
  load(turns: Turn[], running: Running = "lost"): Effect[] {
    const renew = this.#renew();
    if (this.busy) this.#end("stopped", "stopped");
    this.turns = [...turns];
    this.notice = null;
    this.#before = null;
    this.elsewhere = false;
    const last = this.reply;
    if (last?.state !== "running") return renew;
    if (running === "elsewhere") this.#leave();
    else if (last.place && running === "here") {
      this.phase = "replying";
      this.#asks = ASKS_PER_TURN;
      last.trace = new Trace(null);
    } else this.#end("interrupted", LOST);
    return renew;
  }

  /** Another tab has taken the reply up, and this one's socket is gone for that. */
  giveWay(): void {
    if (this.busy) this.#leave();
    this.down();
  }

  /** The socket is gone. A reply that has a name waits for the next one. */
  down(): void {
    this.#session.linked = false;
    this.prefilled = null;
    if (!this.busy || this.reply?.place) return;
    if (this.phase === "stopping") this.#end("stopped", "stopped");
    else if (this.phase === "replying" || this.#asks >= ASKS_PER_TURN) this.#interrupt();
  }

  /** One event from the server, at time `now` in milliseconds. */
  receive(event: ServerEvent, now: number): Effect[] {
    switch (event.type) {
      case "session.created":
        return this.#up(event.session, now);
      case "response.created":
        if (this.busy && this.reply) name(this.reply, event.response?.id);
        return this.phase === "stopping" ? send(this.#session.cancel()) : []; // the first may have come before there was a response
      case "response.output_text.delta":
      case THOUGHTS:
        if (this.#ours(event.response_id)) this.#grow(event, now);
        return [];
      case "response.done":
        return this.#ours(event.response?.id) ? this.#finish(event.response ?? {}, now) : [];
      case "x_input_text.prefilled":
        if (this.#session.ahead) this.prefilled = { tokens: event.tokens ?? 0, ready: event.cached_tokens ?? 0 };
        return [];
      case "input_text.cleared":
      case "input_text.committed":
        this.#session.typed();
        return [];
      case "error":
        return this.#fault(event.error ?? {}, now);
      default:
        return []; // the protocol has more events than a text page needs
    }
  }

  get #begun(): boolean {
    return this.reply !== null && begun(this.reply);
  }

  #ours(id: string | undefined): boolean {
    const place = this.reply?.place;
    return this.busy && (id === undefined || !place || id === place.id);
  }

  #leave(): void {
    this.phase = "idle";
    this.#session.settle();
    this.elsewhere = true;
    if (this.reply) this.reply.note = "being written in another tab";
  }

  // A reply would outlive its socket, so it is stopped first.
  #renew(): Effect[] {
    const cancel = this.#session.linked && this.busy ? send(this.#session.cancel()) : [];
    this.#session.linked = false;
    this.prefilled = null;
    return [...cancel, { do: "renew" }];
  }

  // Whether `text` cannot be said after `turns`, which the person is told.
  #refuses(text: string, turns: readonly Turn[]): boolean {
    const why = unsendable(text, { turns, elsewhere: this.elsewhere });
    if (why) this.notice = { text: why };
    return why !== "";
  }

  #replace(at: number, turns: Turn[], sentence: string, settings: Settings, now: number): Effect[] {
    const before = this.turns;
    this.turns = [...before.slice(0, at), ...turns];
    const effects = [...this.#renew(), ...this.#begin(settings, now)];
    const lost = before.slice(at).some(begun);
    this.#before = lost ? before : null;
    if (lost) this.notice = { text: sentence, action: "undo" };
    return effects;
  }

  #begin(settings: Settings, now: number): Effect[] {
    this.notice = null;
    this.prefilled = null;
    this.phase = "asking";
    this.#asks = 0;
    this.turns.push(newReply(settings, now));
    return this.#session.linked ? this.#ask(now) : [];
  }

  #ask(now: number): Effect[] {
    const reply = this.reply;
    if (!reply?.settings) return [];
    this.#asks += 1;
    reply.trace = new Trace(now); // TTFT counts from this very event
    return send(this.#session.ask(reply.settings));
  }

  #up(session: ServerEvent["session"], now: number): Effect[] {
    this.model = session?.model ?? this.model;
    const place = this.busy ? this.reply?.place : null;
    this.#session.open(Boolean(place));
    if (!place) return this.#replay(now);
    const cancel = this.phase === "stopping" ? this.#session.cancel() : [];
    return send([...this.#session.resume(place), ...cancel]);
  }

  // An empty session gets everything said so far.
  #replay(now: number): Effect[] {
    if (unsendable("", this)) return []; // nothing can be asked of this session
    const said = send(this.#session.replay(this.turns));
    return this.phase === "asking" ? [...said, ...this.#ask(now)] : said;
  }

  #grow(event: ServerEvent, now: number): void {
    if (this.reply) grow(this.reply, event, now);
    if (this.phase === "asking" && this.#begun) this.phase = "replying";
  }

  #finish(body: ResponseBody, now: number): Effect[] {
    const reply = this.reply;
    if (!reply) return [];
    reply.trace?.finish(body.usage, now);
    const { state, note, fault } = ending(reply, body);
    if (fault !== null && !begun(reply)) return this.#withdraw(fault);
    this.#end(state, note);
    if (fault !== null) this.notice = { text: fault, action: "retry" };
    return [];
  }

  #fault(fault: Fault, now: number): Effect[] {
    const purpose = this.#session.purpose(fault.event_id);
    if (purpose === "cancel") return []; // the reply was over, or not there yet, when it came
    if (purpose === "resume") return this.#gone(now);
    if (purpose === "typing") {
      this.#session.refuseTyping(); // the words are still the composer's
      return [];
    }
    const sentence = advice(fault, "The server reported an error without saying which; try again.");
    const refused = purpose === "turn" || (!fault.event_id && !this.reply?.place);
    if (this.busy && !this.#begun && refused) return this.#withdraw(sentence);
    this.notice = { text: sentence };
    return [];
  }

  // There is nothing to take up: the session is an empty one.
  #gone(now: number): Effect[] {
    if (this.reply) this.reply.place = null;
    if (this.phase === "stopping") this.#end("stopped", "stopped");
    else if (this.#begun || this.#asks >= ASKS_PER_TURN) this.#interrupt();
    return this.#replay(now);
  }

  #interrupt(): void {
    const when = this.#begun ? "during the reply; what had arrived is kept" : "twice before the reply began";
    this.#end("interrupted", LOST);
    this.notice = { text: `The connection was lost ${when}.`, action: "retry" };
  }

  #end(state: TurnState, note: string): void {
    if (this.reply) end(this.reply, state, note);
    this.phase = "idle";
    this.#session.settle();
  }

  // A turn that never began: the person's words go back to the composer, and a session that may hold them is left.
  #withdraw(sentence: string | null): Effect[] {
    const user = this.turns.at(-2);
    const before = this.#before;
    this.phase = "idle"; // nothing runs that would have to be stopped
    const effects = this.#session.linked ? this.#renew() : [];
    this.turns = before ?? this.turns.slice(0, user?.role === "user" ? -2 : -1);
    this.#before = null;
    this.notice = sentence === null ? null : { text: sentence };
    const words = user?.role === "user" && !before?.includes(user) ? user.text : null;
    return words === null ? effects : [{ do: "restore", text: words }, ...effects];
  }
}
