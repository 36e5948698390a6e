// The reply's figures as they stand.

import type { ReadonlySignal } from "@preact/signals";
import { decimal, milliseconds, percent } from "../shell/format";
import type { Trace } from "./trace";

export function FiguresPanel({ trace, tick }: { trace: Trace; tick: ReadonlySignal<number> }) {
  void tick.value;
  const { figures } = trace;
  const told: [string, string][] = [
    ["TTFT", milliseconds(figures.ttft)],
    ["TPOT", milliseconds(figures.tpot)],
    ["Tokens/s", decimal(figures.rate)],
    ["Tokens per step", decimal(figures.perStep)],
    ["Guesses accepted", percent(figures.acceptance)],
    ["Cache hit", percent(figures.cacheHit)],
  ];
  return (
    <div class="spec-part">
      <dl class="spec-figures">
        {told.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p class="spec-key">
        TTFT: time to first token. TPOT: time per output token after the first. Tokens per step: 1 is plain decoding.
        Cache hit: share of the prompt that was in the cache, known at the end.
      </p>
    </div>
  );
}
