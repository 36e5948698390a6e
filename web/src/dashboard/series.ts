// Lines over time, one value for each row; null where the line breaks.

import { type Column, type Row, valueAt } from "./history";

export type Line = (number | null)[];

const total = (row: Row, columns: readonly Column[]) => columns.reduce((sum, column) => sum + valueAt(row, column), 0);

/** What gauges stood at, together. */
export function levels(rows: readonly Row[], columns: readonly Column[]): Line {
  return rows.map((row) => {
    const value = total(row, columns);
    return columns.length === 0 || row.gap || Number.isNaN(value) ? null : value;
  });
}

/** Per second since the row before. */
export function rates(rows: readonly Row[], columns: readonly Column[]): Line {
  return steps(rows, (before, row) => (total(row, columns) - total(before, columns)) / (row.at - before.at));
}

/** Growth of one for growth of the other since the row before, times `scale`; null where the other stood still. */
export function ratios(rows: readonly Row[], part: readonly Column[], whole: readonly Column[], scale = 1): Line {
  return steps(rows, (before, row) => {
    const grown = total(row, whole) - total(before, whole);
    return grown > 0 ? ((total(row, part) - total(before, part)) / grown) * scale : null;
  });
}

function steps(rows: readonly Row[], value: (before: Row, row: Row) => number | null): Line {
  return rows.map((row, index) => {
    const before = rows[index - 1];
    return before === undefined || row.gap || row.at <= before.at ? null : value(before, row);
  });
}

/** Lines added up from the first on, for areas that lie on each other; null where any of them is. */
export function stacked(lines: readonly Line[]): Line[] {
  const sums: Line[] = [];
  for (const line of lines) {
    const below = sums.at(-1);
    sums.push(
      line.map((value, index) => {
        const under = below === undefined ? 0 : (below[index] ?? null);
        return value === null || under === null ? null : value + under;
      }),
    );
  }
  return sums;
}

export interface Extremes {
  /** The newest value; null where the line has none there. */
  last: number | null;
  least: number | null;
  most: number | null;
}

export function extremes(line: Line): Extremes {
  let least: number | null = null;
  let most: number | null = null;
  for (const value of line) {
    if (value === null) continue;
    least = Math.min(value, least ?? value);
    most = Math.max(value, most ?? value);
  }
  return { last: line.at(-1) ?? null, least, most };
}
