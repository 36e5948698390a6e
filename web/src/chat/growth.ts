// What the server's events make of a reply: its name, its growth and its end.

import { advice } from "../wire/errors";
import type { ResponseBody, ServerEvent } from "../wire/events";
import { summary, type Turn, type TurnState } from "./turns";

export const THOUGHTS = "x_response.reasoning.delta";

/** The name by which it can be taken up again; the first one counts. */
export function name(reply: Turn, id: string | undefined): void {
  if (id !== undefined) reply.place ??= { id, seq: 0 };
}

/** Text or thoughts have come, at `now` in milliseconds. A resumed reply may bring a delta again, which changes nothing. */
export function grow(reply: Turn, { type, delta, response_id, x_seq, x_spec }: ServerEvent, now: number): void {
  if (delta === undefined) return;
  name(reply, response_id);
  if (reply.place && x_seq !== undefined) {
    if (x_seq <= reply.place.seq) return;
    reply.place.seq = x_seq;
  }
  if (type === THOUGHTS) {
    reply.trace?.think(x_spec, now);
    reply.thoughts += delta;
  } else {
    reply.trace?.push(delta, x_spec, now);
    reply.text += delta;
  }
}

export interface Ending {
  state: TurnState;
  note: string;
  /** What went wrong, and what to do; null where nothing did. */
  fault: string | null;
}

/** How the server ended the reply. */
export function ending(reply: Turn, { status, status_details: details }: ResponseBody): Ending {
  if (status === "failed") {
    const fault = advice(details?.error ?? {}, "The server could not finish the reply; try again.");
    return { state: "failed", note: "broken off", fault };
  }
  if (status === "cancelled") return { state: "stopped", note: "stopped", fault: null };
  const silent = reply.text === "";
  const thought = reply.thoughts !== "";
  if (status === "incomplete") {
    const note = silent && thought ? "length limit reached before the answer" : "length limit reached";
    return { state: "cut", note, fault: null };
  }
  const nothing = thought ? "the model thought, and had nothing to say" : "the model had nothing to say";
  return { state: "done", note: silent ? nothing : "", fault: null };
}

/** No more of it will come. note: how it ended; "" where there is nothing to say. */
export function end(reply: Turn, state: TurnState, note: string): void {
  Object.assign(reply, { state, place: null });
  reply.trace?.close();
  reply.note = [note, summary(reply)].filter(Boolean).join(" · ");
}
