// The server's figures over time: a bounded list of scrapes in which counters only ever grow.
//
// A scrape is a row of numbers; every series has a column for good. A server that was started again counts from zero:
// what it had counted before is added from then on, so that any two rows can be subtracted.

import type { Family, Kind } from "./prometheus";

const WHOLE_S = 900; // the newest rows, all of them
const THINNED_EVERY_S = 15; // older ones
const THINNED_ROWS = 240;
const GAP_S = 5; // rows further apart than this were not taken one after the other
const MOST_COLUMNS = 4096; // no Paceline server has as many; what a broken one sends must not fill the memory

export interface Row {
  /** Seconds since 1970. */
  readonly at: number;
  /** Nothing is known of the time since the row before: the page was hidden, or the server away. */
  gap: boolean;
  readonly values: Float64Array;
}

export interface Column {
  readonly index: number;
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly counts: boolean;
}

/** What a row says in a column. A counter that was not there yet stood at 0; a gauge that is not there is NaN. */
export function valueAt(row: Row, column: Column): number {
  return row.values[column.index] ?? (column.counts ? 0 : Number.NaN);
}

export class History {
  /** Oldest first. */
  readonly rows: Row[] = [];
  /** How things stood when the server began to count; `at` is NaN where it does not tell when that was. */
  start: Row = { at: Number.NaN, gap: false, values: new Float64Array() };
  readonly #byFamily = new Map<string, Map<string, Column>>();
  readonly #columns: Column[] = [];
  #raw = new Float64Array();
  #created = Number.NaN; // by the server's clock
  #thinned = 0; // so many rows at the front are thinned already

  get newest(): Row | undefined {
    return this.rows.at(-1);
  }

  get columns(): readonly Column[] {
    return this.#columns;
  }

  /** Columns of a family in the order the server tells them; none where the server has no such family. */
  family(name: string): Column[] {
    return [...(this.#byFamily.get(name)?.values() ?? [])];
  }

  /** One scrape. Seconds since 1970: `at` by a clock that never goes back, `serverNow` by the server's. */
  push(at: number, families: ReadonlyMap<string, Family>, serverNow = at): void {
    const before = this.#raw;
    const [raw, created] = this.#read(families);
    const fell = this.#columns.some(({ counts, index }) => counts && (raw[index] ?? 0) < (before[index] ?? 0));
    const restarted = fell || created > this.#created;
    const offsets = Float64Array.from(this.#columns, ({ counts, index }) => {
      const offset = this.start.values[index] ?? 0;
      return counts && restarted ? offset + (before[index] ?? 0) : offset;
    });
    this.start = { at: at - (serverNow - created), gap: false, values: offsets };
    this.#raw = raw;
    this.#created = created;
    const gap = at - (this.newest?.at ?? at) > GAP_S;
    this.rows.push({ at, gap, values: raw.map((value, index) => value + (offsets[index] ?? 0)) });
    this.#thin(at);
  }

  /** The row from which on `seconds` have passed, or the oldest there is. */
  before(seconds: number): Row {
    const from = (this.newest?.at ?? 0) - seconds;
    return this.rows.findLast(({ at }) => at <= from) ?? this.rows[0] ?? this.start;
  }

  /** As `before`; but if the server began after that, everything it counted belongs to the time that is asked for. */
  since(seconds: number): Row {
    const row = this.before(seconds);
    const from = (this.newest?.at ?? 0) - seconds;
    return row.at > from && this.start.at >= from && this.start.at < row.at ? this.start : row;
  }

  /** The rows of the last `seconds`, oldest first. */
  within(seconds: number): Row[] {
    const from = (this.newest?.at ?? 0) - seconds;
    return this.rows.slice(this.rows.findIndex(({ at }) => at >= from));
  }

  /** The values in their columns, and when the oldest counter was made: seconds since 1970, NaN where none tells. */
  #read(families: ReadonlyMap<string, Family>): [Float64Array<ArrayBuffer>, number] {
    const cells: [Column, number][] = [];
    let created = Number.POSITIVE_INFINITY;
    for (const family of families.values()) {
      if (family.name.endsWith("_created")) {
        for (const { value } of family.samples) created = Math.min(created, value);
        continue;
      }
      for (const { name, labels, value } of family.samples) {
        const column = this.#column(family.name, family.kind, name, labels);
        if (column) cells.push([column, value]);
      }
    }
    const raw = Float64Array.from(this.#columns, ({ counts }) => (counts ? 0 : Number.NaN));
    for (const [{ index }, value] of cells) if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) raw[index] = value;
    return [raw, Number.isFinite(created) ? created : Number.NaN];
  }

  #column(family: string, kind: Kind, name: string, labels: ReadonlyMap<string, string>): Column | undefined {
    const columns = this.#byFamily.get(family) ?? new Map<string, Column>();
    const key = JSON.stringify([name, ...labels]);
    const known = columns.get(key);
    if (known || this.#columns.length >= MOST_COLUMNS) return known;
    const column = { index: this.#columns.length, name, labels, counts: kind === "counter" || kind === "histogram" };
    this.#columns.push(column);
    columns.set(key, column);
    this.#byFamily.set(family, columns);
    return column;
  }

  #thin(now: number): void {
    for (;;) {
      const aged = this.rows[this.#thinned];
      if (aged === undefined || now - aged.at <= WHOLE_S) return;
      const kept = this.rows[this.#thinned - 1];
      if (kept && aged.at - kept.at < THINNED_EVERY_S) {
        this.rows.splice(this.#thinned, 1);
        const next = this.rows[this.#thinned];
        if (next) next.gap ||= aged.gap;
      } else if (this.#thinned === THINNED_ROWS) this.rows.shift();
      else this.#thinned += 1;
    }
  }
}
