// Figures in words; "–" where there is none.

import { decimal, milliseconds, percent } from "../shell/format";
import { type Distribution, mean, type Quantile, quantile } from "./distribution";

/** How the values of a family are written, from the unit it has on the wire. */
export type Unit = (value: number | null) => string;

export const seconds: Unit = (value) => milliseconds(value === null ? null : value * 1000);
export const share: Unit = percent;
export const amount: Unit = (value) => (Number.isInteger(value) ? String(value) : decimal(value));
export { whole } from "../shell/format";

const SIDES: Readonly<Record<Quantile["side"], string>> = { at: "", under: "≤ ", over: "> " };

export function quantileText(of: Distribution | null, q: number, unit: Unit): string {
  const found = of && quantile(of, q);
  if (!found) return unit(null);
  return SIDES[found.side] + unit(found.value);
}

export function meanText(of: Distribution | null, unit: Unit): string {
  return unit(of && mean(of));
}

/** A bucket's bound as a mark on an axis: milliseconds without the unit below a second. */
export function secondsMark(bound: number): string {
  if (bound === Number.POSITIVE_INFINITY) return "more";
  return bound < 1 ? String(Math.round(bound * 1e6) / 1e3) : `${bound}s`;
}

export function countMark(bound: number): string {
  return bound === Number.POSITIVE_INFINITY ? "more" : String(bound);
}
