// Events that more than one view sends (docs/realtime.md).

import type { ClientEvent } from "./events";

export type Role = "user" | "assistant";

/** An item of a conversation. id: the name it is to have; null: the server gives it one. */
export function messageItem(role: Role, text: string, id: string | null = null): Record<string, unknown> {
  const type = role === "assistant" ? "output_text" : "input_text";
  return { type: "message", role, content: [{ type, text }], ...(id === null ? {} : { id }) };
}

export function messageEvent(role: Role, text: string, id: string | null = null): ClientEvent {
  return { type: "conversation.item.create", item: messageItem(role, text, id) };
}

export function sessionUpdate(instructions: string): ClientEvent {
  return { type: "session.update", session: { type: "realtime", output_modalities: ["text"], instructions } };
}
