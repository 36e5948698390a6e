// The events a conversation is made of on the wire (docs/realtime.md).

import { type Settings, samplingBody } from "../settings/parse";
import type { ClientEvent } from "../wire/events";

const LARGEST_FRAME = 1_000_000; // bytes; the server closes a socket on a frame over 1 MiB

export type Role = "user" | "assistant";

export function messageEvent(role: Role, text: string): ClientEvent {
  const type = role === "assistant" ? "output_text" : "input_text";
  return { type: "conversation.item.create", item: { type: "message", role, content: [{ type, text }] } };
}

/** Whether a message of this text would be more than one frame may hold. Bytes count, not characters. */
export function tooLong(text: string): boolean {
  return new TextEncoder().encode(JSON.stringify(messageEvent("user", text))).length > LARGEST_FRAME;
}

export function sessionUpdate(instructions: string): ClientEvent {
  return { type: "session.update", session: { type: "realtime", output_modalities: ["text"], instructions } };
}

/** A reply that tells its verify steps and outlives its socket. */
export function responseCreate(settings: Settings): ClientEvent {
  const speculation = { mode: settings.speculation ? "auto" : "none", trace: true };
  return { type: "response.create", response: { ...samplingBody(settings), speculation, x_resume: true } };
}
