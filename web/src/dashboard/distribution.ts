// A histogram as Prometheus counts it, and what can be told of its quantiles.

export interface Distribution {
  /** Upper bounds, ascending; the last may be infinite. */
  readonly bounds: readonly number[];
  /** How many fell into each bucket, not cumulative. */
  readonly counts: readonly number[];
  readonly count: number;
  readonly sum: number;
}

/** cumulative: how many were at most as large as each bound. */
export function distribution(cumulative: ReadonlyMap<number, number>, sum: number): Distribution {
  const sorted = [...cumulative].sort(([a], [b]) => a - b);
  const counts = sorted.map(([, upTo], index) => Math.max(0, upTo - (sorted[index - 1]?.[1] ?? 0)));
  const count = counts.reduce((total, each) => total + each, 0);
  return { bounds: sorted.map(([bound]) => bound), counts, count, sum };
}

export interface Quantile {
  value: number;
  /** "under": the first bucket holds it, and it is `value` at most; "over": the last does, and it is more. */
  side: "at" | "under" | "over";
}

/**
 * Interpolated evenly inside its bucket, as Prometheus' histogram_quantile does, so it is exact to a bucket; null of
 * nothing. Values are no less than 0; q from 0 to 1.
 */
export function quantile({ bounds, counts, count }: Distribution, q: number): Quantile | null {
  if (count === 0) return null;
  const rank = q * count;
  let below = 0;
  for (const [index, inside] of counts.entries()) {
    const high = bounds[index] ?? Number.POSITIVE_INFINITY;
    const low = bounds[index - 1];
    if (inside > 0 && below + inside >= rank) {
      if (high === Number.POSITIVE_INFINITY) return low === undefined ? null : { value: low, side: "over" };
      if (low === undefined) return { value: high, side: "under" };
      return { value: low + ((high - low) * (rank - below)) / inside, side: "at" };
    }
    below += inside;
  }
  return null;
}

/** null of nothing. */
export function mean({ count, sum }: Distribution): number | null {
  return count === 0 ? null : sum / count;
}
