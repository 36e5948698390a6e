// What comes out of a conversation besides its turns.

import type { ClientEvent } from "../wire/events";

/** renew: a new socket, whose session starts empty. restore: the person's words go back to the composer. */
export type Effect = { do: "send"; event: ClientEvent } | { do: "renew" } | { do: "restore"; text: string };

/** idle: nothing runs. asking: nothing has come yet. replying: text or thoughts arrive. stopping: cancel was sent. */
export type Phase = "idle" | "asking" | "replying" | "stopping";

/** A sentence for the person, and what can be done about it besides dismissing it. */
export interface Notice {
  text: string;
  action?: "retry" | "undo";
}

/** The prompt as the session would make it now: its tokens, and how many of them are computed already. */
export interface Prefilled {
  tokens: number;
  ready: number;
}

export function send(events: ClientEvent[]): Effect[] {
  return events.map((event) => ({ do: "send", event }));
}
