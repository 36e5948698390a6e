// What the session on the other side is known to have, and the events that bring it to what the page wants of it.

import type { Settings } from "../settings/parse";
import type { ClientEvent } from "../wire/events";
import { messageEvent, sessionUpdate, wellFormed } from "../wire/requests";
import { Sent } from "../wire/sent";
import { responseCreate } from "./requests";
import type { Place, Turn } from "./turns";
import { Typing } from "./typing";

/** What an event of ours, which an error is about, was for. */
export type Purpose = "turn" | "typing" | "cancel" | "resume";

export class Session {
  linked = false;
  readonly #typing = new Typing();
  readonly #sent = new Sent<Purpose>("page"); // on this socket
  #instructions: string | null = null; // null before the session was told

  /** A new one is there, and empty. resumes: it becomes the former one if the server still has that. */
  open(resumes: boolean): void {
    this.linked = true;
    this.#sent.clear();
    this.#instructions = null;
    if (resumes) this.#typing.doubt();
    else this.#typing.reset();
  }

  /** null: it is none of ours, or the error names none. */
  purpose(eventId: string | null | undefined): Purpose | null {
    return this.#sent.purpose(eventId);
  }

  /** The turn is over: errors that still come about its events do not refuse another one. */
  settle(): void {
    this.#sent.settle("turn");
  }

  /** The person has written `text` so far. */
  type(text: string, instructions: string): ClientEvent[] {
    const events = this.#typing.follow(wellFormed(text));
    return events.length === 0 ? [] : this.#all([...this.#configure(instructions), ...events], "typing");
  }

  /** What was typed is cleared or committed, as was asked for. */
  typed(): void {
    this.#typing.answered();
  }

  /** Whether what is told of typed text is about the newest. */
  get ahead(): boolean {
    return this.#typing.current;
  }

  /** An event of `type` was refused: the text is only sent with its turn. */
  refuseTyping(): void {
    this.#typing.refuse();
    this.#instructions = null;
  }

  /** The person's turn: what was typed ahead is used where it is the same. */
  message(text: string): ClientEvent[] {
    // Were one of the events it is made of refused, the turn would be another text than this.
    this.#sent.become("typing", "turn");
    const commit = this.#typing.commit(wellFormed(text));
    return this.#all(commit ? [commit] : [...this.#typing.drop(), messageEvent("user", text)], "turn");
  }

  replay(turns: readonly Turn[]): ClientEvent[] {
    const said = turns.filter(({ text }) => text !== "");
    return this.#all(
      said.map(({ role, text }) => messageEvent(role, text)),
      "turn",
    );
  }

  ask(settings: Settings): ClientEvent[] {
    return this.#all([...this.#configure(settings.instructions), responseCreate(settings)], "turn");
  }

  cancel(): ClientEvent[] {
    return this.#all([{ type: "response.cancel" }], "cancel");
  }

  resume({ id, seq }: Place): ClientEvent[] {
    return this.#all([{ type: "x_response.resume", response_id: id, starting_after: seq }], "resume");
  }

  #configure(instructions: string): ClientEvent[] {
    if (instructions === this.#instructions) return [];
    this.#instructions = instructions;
    return [sessionUpdate(instructions)];
  }

  #all(events: ClientEvent[], purpose: Purpose): ClientEvent[] {
    return events.map((event) => this.#sent.named(event, purpose));
  }
}
