// What the chat alone sends (docs/realtime.md).

import { type Settings, samplingBody } from "../settings/parse";
import { AUTO } from "../wire/drafters";
import type { ClientEvent } from "../wire/events";
import { messageEvent } from "../wire/requests";

const WAIT = "The reply is being written in another tab; it is here when it is over, and then you can go on.";
const LONG_MESSAGE = "This message is too long to send, about 1 MB; shorten it.";
export const LONG_PROMPT = "The system prompt is too long to send, about 1 MB; shorten it.";
const LONG_TURN = "A turn of this conversation is too long to send, about 1 MB; edit it, or start a new conversation.";
const LARGEST_FRAME = 1_000_000; // bytes; the server closes a socket on a frame over 1 MiB
const MOST_BYTES = 6; // of one UTF-16 unit in JSON

/** Whether a message of this text, or a prompt, would be more than one frame may hold. Bytes count, not characters. */
export function tooLong(text: string): boolean {
  if (text.length * MOST_BYTES < LARGEST_FRAME / 2) return false; // as good as every text
  return new TextEncoder().encode(JSON.stringify(messageEvent("user", text))).length > LARGEST_FRAME;
}

/** What stands before a text: the turns, the last of which may come to another tab. */
export interface Said {
  turns: readonly { text: string }[];
  elsewhere: boolean;
}

/** Why `text` cannot be said after `turns`; "" where it can. */
export function unsendable(text: string, { turns, elsewhere }: Said): string {
  if (elsewhere) return WAIT;
  if (tooLong(text)) return LONG_MESSAGE;
  return turns.some((turn) => tooLong(turn.text)) ? LONG_TURN : "";
}

/** A reply that tells its verify steps and outlives its socket. */
export function responseCreate(settings: Settings): ClientEvent {
  const { drafter, maxNodes } = settings;
  const nodes = maxNodes === null ? {} : { max_nodes: maxNodes };
  const speculation = settings.speculation
    ? { mode: drafter || AUTO, ...nodes, trace: true }
    : { mode: "none", trace: true };
  return { type: "response.create", response: { ...samplingBody(settings), speculation, x_resume: true } };
}
