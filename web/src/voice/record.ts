// The conversation as the server has it. The page keeps it too: a session ends with its socket, and the next one is
// given all of it again, under the same ids.

import type { ClientEvent } from "../wire/events";
import { messageEvent, type Role } from "../wire/requests";

export interface Line {
  /** The server's name for it; null until it told one. */
  id: string | null;
  role: Role;
  text: string;
  /** A reply that ends where the person stopped hearing it. */
  cut: boolean;
}

export class Conversation {
  readonly lines: Line[] = [];

  said(words: string): void {
    this.lines.push({ id: null, role: "user", text: words, cut: false });
  }

  /** A reply has ended; one without text is no line. */
  answered({ itemId, text }: { itemId: string | null; text: string }): void {
    if (text !== "") this.lines.push({ id: itemId, role: "assistant", text, cut: false });
  }

  /** The person's newest words have this name; undefined: the event told none. */
  named(id: string | undefined): void {
    const line = this.lines.at(-1);
    if (line?.role === "user") line.id ??= id ?? null;
  }

  /** Takes the person's newest words out again; "" where a reply stands behind them. */
  takeBack(): string {
    return this.lines.at(-1)?.role === "user" ? (this.lines.pop()?.text ?? "") : "";
  }

  /** The newest reply keeps `heard` alone; one of which nothing was heard was never said. */
  cut(heard: string): void {
    const line = this.lines.at(-1);
    if (line?.role !== "assistant") return;
    line.text = heard;
    line.cut = true;
    if (heard === "") this.lines.pop();
  }

  clear(): void {
    this.lines.length = 0;
  }

  /** For a session that knows nothing. */
  putBack(): ClientEvent[] {
    return this.lines.map(({ id, role, text }) => messageEvent(role, text, id));
  }
}
