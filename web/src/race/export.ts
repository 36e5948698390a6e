// A recorded race as JSON, for other tools and for reports of faults.

import { kept, type Outcome } from "./outcome";
import { LANES } from "./plan";

const FORMAT = "paceline-race/1";

/** model: the served model's name; taken: when the race was run. All times in milliseconds since the lane's request. */
export function exported(outcome: Outcome, model: string, taken: Date): Record<string, unknown> {
  const { plan, first, tokens, total, lanes } = outcome;
  const lane = (name: (typeof LANES)[number]) => {
    const { text, marks, steps, figures } = lanes[name];
    const { ttft, tpot, perStep, drafted, accepted, prompt, cached } = figures;
    const times = { total_ms: total[name], ttft_ms: ttft, tpot_ms: tpot };
    const counts = { tokens: tokens[name], tokens_per_step: perStep, drafted, accepted };
    return { ...times, ...counts, prompt_tokens: prompt, cached_tokens: cached, text, deltas: marks, steps };
  };
  return {
    format: FORMAT,
    taken: taken.toISOString(),
    model,
    plan,
    first,
    identical: kept(outcome),
    lanes: Object.fromEntries(LANES.map((name) => [name, lane(name)])),
  };
}
