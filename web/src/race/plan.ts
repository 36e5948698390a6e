// What a race is to be, checked before anything is sent.

import { drawSeed, type FormValues, isProblem, number, parse, samplingBody } from "../settings/parse";
import { AUTO } from "../wire/drafters";
import type { ClientEvent } from "../wire/events";
import { messageItem } from "../wire/requests";
import { OWN, SAMPLES, sampleOf } from "./prompts";

/** The two ways the same reply is made. */
export const LANES = ["plain", "speculating"] as const;
export type LaneName = (typeof LANES)[number];

/** The form as it stands. */
export interface RaceForm {
  /** A sample's id, or OWN. */
  prompt: string;
  own: string;
  seed: string;
  limit: string;
  mode: string;
  maxNodes: string;
}

export interface Plan {
  prompt: string;
  instructions: string;
  /** Fields of `response.create`, seed and length among them. */
  sampling: Record<string, unknown>;
  seed: number;
  /** Tokens. */
  limit: number;
  /** The drafters that may guess, as the server names them. */
  mode: string;
  /** Rows a step may verify, the root included; null: as many as the server allows. */
  maxNodes: number | null;
}

export interface PlanProblem {
  /** null: it lies in the chat's settings. */
  field: keyof RaceForm | null;
  sentence: string;
}

const DEFAULT_LIMIT = 128;
const LONGEST = 1024; // a race is looked at whole, and both lanes stay in memory with their times
const MOST_NODES = 64; // the most a tree can have on any server
const SEED = { name: "seed", low: 0, high: Number.MAX_SAFE_INTEGER, whole: true };
const LIMIT = { name: "longest reply", low: 2, high: LONGEST, whole: true };
const NODES = { name: "largest tree", low: 1, high: MOST_NODES, whole: true };

/** settings: of the chat; their seed is where the form's begins. */
export function firstForm(settings: FormValues): RaceForm {
  const seed = settings.seed.trim() || String(drawSeed());
  return { prompt: SAMPLES[0].id, own: "", seed, limit: String(DEFAULT_LIMIT), mode: AUTO, maxNodes: "" };
}

/** A form that was remembered; its prompt may be none of today's. */
export function knownForm(form: RaceForm): RaceForm {
  const known = form.prompt === OWN || sampleOf(form.prompt) !== undefined;
  return known ? form : { ...form, prompt: SAMPLES[0].id };
}

export function promptOf(form: RaceForm): string {
  return form.prompt === OWN ? form.own.trim() : (sampleOf(form.prompt)?.text ?? "");
}

/** A race from the form and the chat's settings, or what is wrong with them. draw: the seed where the form has none. */
export function planned(form: RaceForm, settings: FormValues, draw = drawSeed): Plan | PlanProblem {
  const prompt = promptOf(form);
  if (!prompt) return { field: "own", sentence: "There is no prompt yet; write one, or choose one of the examples." };
  const numbers = { seed: SEED, limit: LIMIT, maxNodes: NODES };
  const read: Partial<Record<keyof typeof numbers, number | null>> = {};
  for (const field of Object.keys(numbers) as (keyof typeof numbers)[]) {
    try {
      read[field] = number(form[field], numbers[field]);
    } catch (error) {
      return { field, sentence: (error as RangeError).message };
    }
  }
  const own = parse({ ...settings, seed: "", maxTokens: "", maxNodes: "" }, () => read.seed ?? draw());
  if (isProblem(own)) return { field: null, sentence: own.sentence };
  const limit = read.limit ?? DEFAULT_LIMIT;
  const sampling = samplingBody({ ...own, maxTokens: limit });
  const mode = form.mode.trim() || AUTO;
  return {
    prompt,
    instructions: own.instructions,
    sampling,
    seed: own.seed,
    limit,
    mode,
    maxNodes: read.maxNodes ?? null,
  };
}

/** Whether the form, with the chat's settings, still asks for the race that was run. */
export function stillAsks(form: RaceForm, settings: FormValues, ran: Plan): boolean {
  const now = planned(form, settings, () => ran.seed);
  return !isPlanProblem(now) && JSON.stringify(now) === JSON.stringify(ran);
}

export function isPlanProblem(plan: Plan | PlanProblem): plan is PlanProblem {
  return "sentence" in plan;
}

/** The event that asks for one reply of the race; "warm": the one token that leaves the prompt in the cache. */
export function request(plan: Plan, leg: LaneName | "warm"): ClientEvent {
  const nodes = plan.maxNodes === null ? {} : { max_nodes: plan.maxNodes };
  const drafting = leg === "speculating" ? { mode: plan.mode, ...nodes } : { mode: "none" };
  return {
    type: "response.create",
    event_id: `race-${leg}`,
    response: {
      conversation: "none",
      input: [messageItem("user", plan.prompt)],
      instructions: plan.instructions,
      ...plan.sampling,
      ...(leg === "warm" ? { max_output_tokens: 1 } : {}),
      speculation: { ...drafting, trace: true }, // for both, since telling steps takes time too
    },
  };
}

/** Equal for races for the same reply, however it is drafted: their times may be compared. */
export function keyOf({ prompt, instructions, sampling }: Plan): string {
  return JSON.stringify([prompt, instructions, sampling]);
}
