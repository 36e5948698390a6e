// The reply's figures as they stand.

import type { ReadonlySignal } from "@preact/signals";
import { decimal, milliseconds, percent } from "./format";
import type { Trace } from "./trace";

export function FiguresPanel({ trace, tick }: { trace: Trace; tick: ReadonlySignal<number> }) {
  void tick.value;
  const { figures } = trace;
  const told: [string, string, string][] = [
    ["First token", milliseconds(figures.ttft), "Time from the request to the first text (TTFT)"],
    ["Per token", milliseconds(figures.tpot), "Time per output token after the first (TPOT)"],
    ["Tokens/s", decimal(figures.rate), "Tokens per second, the reverse of the time per token"],
    ["Tokens/step", decimal(figures.perStep), "Tokens per verify step; 1 is plain decoding"],
    ["Accepted", percent(figures.acceptance), "Share of the guesses that became text"],
    [
      "Cache hit",
      percent(figures.cacheHit),
      "Share of the prompt that was in the cache; known when the reply has ended",
    ],
  ];
  return (
    <dl class="spec-figures">
      {told.map(([name, value, title]) => (
        <div key={name} title={title}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
