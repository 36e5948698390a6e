// A distribution as bars: the buckets that hold anything, and how the two stretches of time share them out.

import type { Distribution } from "./distribution";

export interface Bar {
  /** The bucket's upper bound; may be infinite. */
  bound: number;
  /** Which share of all fell into it. */
  recentShare: number;
  alwaysShare: number;
}

/** From the first bucket that holds anything to the last; none when nothing was ever counted. */
export function spread(recent: Distribution, always: Distribution): Bar[] {
  const bars = always.bounds.map((bound, index) => ({
    bound,
    recentShare: part(recent, index),
    alwaysShare: part(always, index),
  }));
  const filled = (bar: Bar) => bar.alwaysShare > 0;
  return bars.slice(Math.max(0, bars.findIndex(filled)), bars.findLastIndex(filled) + 1);
}

/** The likeliest bucket; undefined of none. */
export function fullest(bars: readonly Bar[]): Bar | undefined {
  const weight = (bar: Bar) => bar.recentShare + bar.alwaysShare / 1e6; // the other one decides only where nothing is new
  return bars.reduce<Bar | undefined>((best, bar) => (best && weight(best) >= weight(bar) ? best : bar), undefined);
}

function part({ counts, count }: Distribution, index: number): number {
  return count === 0 ? 0 : (counts[index] ?? 0) / count;
}
