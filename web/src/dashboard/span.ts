// What happened between two scrapes.

import { type Distribution, distribution } from "./distribution";
import { type Column, type History, type Row, valueAt } from "./history";

/** A family by its name on the wire. */
export interface Named {
  readonly name: string;
}

export type Where = Readonly<Record<string, string>>;

export class Span {
  readonly #history: History;
  readonly from: Row;
  readonly to: Row;

  constructor(history: History, from: Row, to: Row) {
    this.#history = history;
    this.from = from;
    this.to = to;
  }

  /** 0 between a row and itself. */
  get seconds(): number {
    return this.to.at - this.from.at;
  }

  /** By how much the counters grew together; null where the server has no such family. */
  increase(family: Named, where: Where = {}): number | null {
    const columns = this.#history.family(family.name).filter((column) => matches(column, where));
    return columns.length === 0 ? null : columns.reduce((sum, column) => sum + this.#grown(column), 0);
  }

  /** Per second; null also where no time has passed. */
  rate(family: Named): number | null {
    const increase = this.increase(family);
    return increase === null || !(this.seconds > 0) ? null : increase / this.seconds;
  }

  /** One growth for another, "tokens per step"; null where the divisor did not grow. */
  ratio(part: Named, whole: Named): number | null {
    const [a, b] = [this.increase(part), this.increase(whole)];
    return a === null || b === null || !(b > 0) ? null : a / b;
  }

  /** Growth by the values of one label, in the order the server tells them. */
  by(family: Named, label: string, where: Where = {}): Map<string, number> {
    const grown = new Map<string, number>();
    for (const column of this.#history.family(family.name)) {
      const value = column.labels.get(label);
      if (value === undefined || !matches(column, where)) continue;
      grown.set(value, (grown.get(value) ?? 0) + this.#grown(column));
    }
    return grown;
  }

  /** null where the server has no such histogram. A bucket whose bound is none is left out. */
  distribution(family: Named): Distribution | null {
    const columns = this.#history.family(family.name);
    const parts = { bucket: new Map<number, number>(), sum: 0 };
    for (const column of columns) {
      if (column.name.endsWith("_sum")) parts.sum += this.#grown(column);
      const le = boundOf(column.labels.get("le"));
      if (le !== null) parts.bucket.set(le, (parts.bucket.get(le) ?? 0) + this.#grown(column));
    }
    return parts.bucket.size === 0 ? null : distribution(parts.bucket, parts.sum);
  }

  #grown(column: Column): number {
    return valueAt(this.to, column) - valueAt(this.from, column);
  }
}

/** Of times and sizes, which are no less than 0; null of anything else. */
function boundOf(le = ""): number | null {
  if (le === "+Inf") return Number.POSITIVE_INFINITY;
  const bound = Number(le);
  return le.trim() !== "" && Number.isFinite(bound) && bound >= 0 ? bound : null;
}

/** A gauge's value now, all its matching series together; null where the server has none. */
export function level(history: History, family: Named, where: Where = {}): number | null {
  const { newest } = history;
  const columns = history.family(family.name).filter((column) => matches(column, where));
  if (newest === undefined || columns.length === 0) return null;
  const sum = columns.reduce((total, column) => total + valueAt(newest, column), 0);
  return Number.isNaN(sum) ? null : sum;
}

export function matches(column: Column, where: Where): boolean {
  return Object.entries(where).every(([name, value]) => column.labels.get(name) === value);
}
