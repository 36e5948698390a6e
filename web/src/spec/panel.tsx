// The reply's figures as they stand.

import type { ReadonlySignal } from "@preact/signals";
import { FigureList, type FigureName, meanings } from "./told";
import type { Trace } from "./trace";

const SHOWN: readonly FigureName[] = ["ttft", "tpot", "rate", "per-step", "acceptance", "cache-hit"];

export function FiguresPanel({ trace, tick }: { trace: Trace; tick: ReadonlySignal<number> }) {
  void tick.value;
  return (
    <div class="spec-part">
      <FigureList class="spec-figures" figures={trace.figures} which={SHOWN} brief />
      <p class="spec-key">{meanings(SHOWN)}</p>
    </div>
  );
}
