// Events that more than one view sends (docs/realtime.md).

import type { ClientEvent } from "./events";

export type Role = "user" | "assistant";

/** Halves of characters, which a browser lets one paste and no JSON reader takes, become signs that something was there. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** An item of a conversation. id: the name it is to have; null: the server gives it one. */
export function messageItem(role: Role, text: string, id: string | null = null): Record<string, unknown> {
  const type = role === "assistant" ? "output_text" : "input_text";
  return { type: "message", role, content: [{ type, text: wellFormed(text) }], ...(id === null ? {} : { id }) };
}

export function messageEvent(role: Role, text: string, id: string | null = null): ClientEvent {
  return { type: "conversation.item.create", item: messageItem(role, text, id) };
}

export function sessionUpdate(instructions: string): ClientEvent {
  const session = { type: "realtime", output_modalities: ["text"], instructions: wellFormed(instructions) };
  return { type: "session.update", session };
}
