// What a finished race says: whether the texts are the same, and what speculating changed.

import { compare, type Different, type Same } from "./comparison";
import type { Lane } from "./lane";
import type { LaneName, Plan } from "./plan";
import type { Race } from "./race";

export interface Outcome {
  plan: Plan;
  first: LaneName;
  comparison: Same | Different;
  /** Output tokens of each lane. */
  tokens: Record<LaneName, number>;
  /** Milliseconds from request to end, with the prompt in the cache. */
  total: Record<LaneName, number>;
  lanes: Record<LaneName, Lane>;
}

/** null: the race is not done. */
export function outcomeOf(race: Race): Outcome | null {
  const { plan, first, phase } = race;
  const { plain, speculating } = race.lanes;
  if (phase !== "done" || plan === null || plain === null || speculating === null) return null;
  return {
    plan,
    first,
    comparison: compare(plain.text, speculating.text),
    tokens: { plain: plain.figures.tokens, speculating: speculating.figures.tokens },
    total: { plain: plain.total ?? 0, speculating: speculating.total ?? 0 },
    lanes: { plain, speculating },
  };
}

/** Whether the promise was kept: the same characters out of the same number of tokens. */
export function kept({ comparison, tokens }: Pick<Outcome, "comparison" | "tokens">): boolean {
  return comparison.same && tokens.plain === tokens.speculating;
}
