// What the chat alone sends (docs/realtime.md).

import { type Settings, samplingBody } from "../settings/parse";
import { AUTO } from "../wire/drafters";
import type { ClientEvent } from "../wire/events";
import { messageEvent } from "../wire/requests";

const LARGEST_FRAME = 1_000_000; // bytes; the server closes a socket on a frame over 1 MiB

/** Whether a message of this text would be more than one frame may hold. Bytes count, not characters. */
export function tooLong(text: string): boolean {
  return new TextEncoder().encode(JSON.stringify(messageEvent("user", text))).length > LARGEST_FRAME;
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
