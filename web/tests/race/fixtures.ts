// What a server says in a race, and races driven with it.

import type { Plan } from "../../src/race/plan";
import { type Effect, Race } from "../../src/race/race";
import type { ServerEvent, Spec } from "../../src/wire/events";

export const PLAN: Plan = {
  prompt: "Count to four.",
  instructions: "",
  sampling: { temperature: 0.2, seed: 5, max_output_tokens: 16 },
  seed: 5,
  limit: 16,
  mode: "auto",
  maxNodes: null,
};

export function delta(text: string, spec?: Spec): ServerEvent {
  return { type: "response.output_text.delta", delta: text, ...(spec ? { x_spec: spec } : {}) };
}

export function done(tokens: number, status: "completed" | "incomplete" = "completed"): ServerEvent {
  return { type: "response.done", response: { status, usage: { output_tokens: tokens } } };
}

/** The kinds of the effects, and the event ids of what is sent. */
export function told(effects: Effect[]): string[] {
  return effects.map((effect) => (effect.kind === "send" ? String(effect.event.event_id) : effect.kind));
}

/** A race that is over: the plain lane took 400 ms by four steps, the speculating one 200 ms by two. */
export function finished(plain = "One two three four", speculating = plain, first: "plain" | "speculating" = "plain") {
  const race = new Race();
  race.start(PLAN, first);
  race.hear({ type: "session.created" }, 0);
  race.hear(done(1), 100);
  let sent = 100;
  for (const lane of first === "plain" ? (["plain", "speculating"] as const) : (["speculating", "plain"] as const)) {
    const text = lane === "plain" ? plain : speculating;
    const pieces = lane === "plain" ? 4 : 2;
    const size = Math.ceil(text.length / pieces);
    for (let i = 0; i < pieces; i += 1) {
      const tokens = 4 / pieces;
      const spec = { drafted: (tokens - 1) * 2, accepted: tokens - 1, emitted: tokens };
      race.hear(delta(text.slice(i * size, (i + 1) * size), spec), sent + (i + 1) * 100);
    }
    sent += pieces * 100;
    race.hear(done(4), sent);
  }
  return race;
}
