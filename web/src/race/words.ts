// A race's result in words.

import { decimal, milliseconds, percent, plural } from "../shell/format";
import { kept, type Outcome } from "./outcome";
import type { LaneName, Plan, RaceForm } from "./plan";
import { OWN, OWN_NAME, SAMPLES, sampleOf } from "./prompts";

const EVEN = 0.02; // two runs of the very same work differ by as much

/** What speculating did to the time; both in milliseconds. */
export function timeSaved({ plain, speculating }: Record<LaneName, number>): string {
  const [fast, slow] = [milliseconds(speculating), milliseconds(plain)];
  if (!(plain > 0 && speculating > 0)) return "Too short to be timed; allow a longer reply.";
  const change = speculating / plain - 1;
  if (Math.abs(change) < EVEN) return `As fast as each other: ${fast} speculating, ${slow} plain.`;
  const times = `${decimal(plain / speculating)} times as fast`;
  if (change < 0) {
    return `Saved ${milliseconds(plain - speculating)}: ${fast} instead of ${slow}, ${percent(-change)} less, ${times}.`;
  }
  return `Speculating took longer: ${fast} instead of ${slow}, ${percent(change)} more. Race again to see whether it stays so, or try another drafter or a smaller tree.`;
}

const FAULT =
  "Speculation must never change a reply, so this is a fault of the server: please save the run and report it.";

/** Whether both lanes wrote the same. */
export function sameness(outcome: Pick<Outcome, "comparison" | "tokens">): string {
  const { comparison, tokens } = outcome;
  if (!comparison.same) return `The texts differ from character ${comparison.at} on. ${FAULT}`;
  const size = plural(comparison.characters, "character");
  if (kept(outcome)) return `Identical text: ${size}, ${plural(tokens.plain, "token")}.`;
  return `The same ${size}, but ${plural(tokens.plain, "token")} plain and ${tokens.speculating} speculating. ${FAULT}`;
}

/** All of it, what matters most first; where the texts differ there is no time to be proud of. */
export function verdict(outcome: Outcome): string[] {
  return kept(outcome) ? [timeSaved(outcome.total), sameness(outcome)] : [sameness(outcome)];
}

/** What is chosen, as a line. */
export function formWords({ prompt, seed, limit, mode, maxNodes }: RaceForm): string {
  const name = sampleOf(prompt)?.name ?? OWN_NAME;
  const numbers = [seed && `seed ${seed}`, limit && `${limit} tokens`, mode, maxNodes && `trees of ${maxNodes}`];
  return [name, ...numbers.filter((part) => part !== "")].join(" · ");
}

/** What was raced, as a line. */
export function planWords(plan: Plan): string {
  const { prompt, seed, limit, mode, maxNodes } = plan;
  const chosen = SAMPLES.find(({ text }) => text === prompt)?.id ?? OWN;
  const numbers = { seed: String(seed), limit: String(limit), maxNodes: String(maxNodes ?? "") };
  return formWords({ prompt: chosen, own: prompt, mode, ...numbers });
}
