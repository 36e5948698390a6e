// One race, without a socket or a clock of its own: events in, effects out. A reply of one token warms the prompt, then
// the lanes run one after the other, since two replies at once would slow each other and measure the machine's load.

import { advice } from "../wire/errors";
import type { ClientEvent, Fault, ServerEvent } from "../wire/events";
import type { LinkState } from "../wire/link";
import { Lane } from "./lane";
import { LANES, type LaneName, type Plan, request } from "./plan";

/** open: a new socket and session; close: for good, which also ends the reply that runs there. */
export type Effect = { kind: "open" } | { kind: "send"; event: ClientEvent } | { kind: "close" };

export type Phase = "ready" | "connecting" | "warming" | LaneName | "done" | "stopped" | "failed";

const BROKEN = "The server broke the reply off and did not say why.";
const NOTHING = "Nothing was compared; change the race or try again.";
const LOST = "The connection was lost in the middle of the race, and half a race says nothing; race again.";
const DELTAS: ReadonlySet<string> = new Set(["response.output_text.delta", "x_response.reasoning.delta"]);

export class Race {
  phase: Phase = "ready";
  /** Why it waits or failed, and what to do; "" where there is nothing to explain. */
  notice = "";
  /** Whether a key is what is missing. */
  locked = false;
  plan: Plan | null = null;
  /** The lane that runs first. */
  first: LaneName = "plain";
  lanes: Record<LaneName, Lane | null> = { plain: null, speculating: null };

  get running(): boolean {
    return this.phase === "connecting" || this.phase === "warming" || this.#lane !== null;
  }

  start(plan: Plan, first: LaneName): Effect[] {
    if (this.running) return [];
    this.phase = "connecting";
    this.notice = "";
    this.locked = false;
    this.plan = plan;
    this.first = first;
    this.lanes = { plain: null, speculating: null };
    return [{ kind: "open" }];
  }

  /** The person wants no more of it; what had arrived stays. */
  stop(): Effect[] {
    return this.running ? this.#end("stopped", "Stopped before the end, so there is nothing to compare.") : [];
  }

  /** What became of the socket, as the link tells it. */
  link(state: LinkState, sentence: string): Effect[] {
    if (!this.running) return [];
    this.locked = state === "locked";
    if (this.locked) return this.#end("failed", sentence);
    if (state !== "waiting") return [];
    if (this.phase !== "connecting") return this.#end("failed", LOST);
    this.notice = sentence;
    return [];
  }

  hear(event: ServerEvent, now: number): Effect[] {
    if (!this.running) return [];
    if (event.type === "session.created") return this.phase === "connecting" ? this.#ask("warming", now) : [];
    if (event.type === "error") return this.#refused(event.error);
    if (event.type === "response.done") return this.#over(event, now);
    if (DELTAS.has(event.type)) this.#lane?.delta(event.delta ?? "", event.x_spec, now);
    return [];
  }

  get #lane(): Lane | null {
    return this.phase === "plain" || this.phase === "speculating" ? this.lanes[this.phase] : null;
  }

  #ask(leg: "warming" | LaneName, now: number): Effect[] {
    if (this.plan === null) return [];
    this.phase = leg;
    this.notice = "";
    if (leg !== "warming") this.lanes[leg] = new Lane(now);
    return [{ kind: "send", event: request(this.plan, leg === "warming" ? "warm" : leg) }];
  }

  #over({ response }: ServerEvent, now: number): Effect[] {
    if (response?.status !== "completed" && response?.status !== "incomplete") {
      return this.#refused(response?.status_details?.error);
    }
    if (this.phase === "warming") return this.#ask(this.first, now);
    const lane = this.#lane;
    if (lane === null) return [];
    lane.finish(response.usage, now);
    const next = LANES.find((name) => this.lanes[name] === null);
    return next === undefined ? this.#end("done", "") : this.#ask(next, now);
  }

  #refused(fault: Fault = {}): Effect[] {
    return this.#end("failed", `${advice(fault, BROKEN)} ${NOTHING}`);
  }

  #end(phase: Phase, notice: string): Effect[] {
    this.phase = phase;
    this.notice = notice;
    return [{ kind: "close" }];
  }
}
