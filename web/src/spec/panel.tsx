// The reply's figures as they stand.

import type { ReadonlySignal } from "@preact/signals";
import { FigureList, type FigureName } from "./told";
import type { Trace } from "./trace";

export const SHOWN: readonly FigureName[] = ["ttft", "tpot", "rate", "per-step", "acceptance", "cache-hit"];

export function FiguresPanel({ trace, tick }: { trace: Trace; tick: ReadonlySignal<number> }) {
  void tick.value;
  return (
    <section class="spec-part" aria-labelledby="spec-figures-title">
      <h3 id="spec-figures-title">Figures</h3>
      <FigureList class="spec-figures" figures={trace.figures} which={SHOWN} brief />
    </section>
  );
}
