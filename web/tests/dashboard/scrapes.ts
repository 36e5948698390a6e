// Scrapes of a server that is told what it counted.

import { History } from "../../src/dashboard/history";
import { parse } from "../../src/dashboard/prometheus";
import { Span } from "../../src/dashboard/span";

/** A family by the name of its samples: "_total" and "_bucket" count, "_created" tells when, the rest are gauges. */
export function exposition(values: Readonly<Record<string, number>>): string {
  const lines: string[] = [];
  let last = "";
  for (const [sample, value] of Object.entries(values)) {
    const name = sample.replace(/\{.*/, "");
    const family = name.replace(/_(bucket|sum|count)$/, "");
    const kind = family !== name ? "histogram" : name.endsWith("_total") ? "counter" : "gauge";
    if (family !== last) lines.push(`# TYPE ${family} ${kind}`);
    last = family;
    lines.push(`${sample} ${Number.isFinite(value) ? value : "NaN"}`);
  }
  return lines.join("\n");
}

export class Scrapes {
  readonly history = new History();

  /** at: seconds. */
  take(at: number, values: Readonly<Record<string, number>>, serverNow?: number): this {
    this.history.push(at, parse(exposition(values)), serverNow);
    return this;
  }

  /** From the oldest row to the newest. */
  get all(): Span {
    const { rows } = this.history;
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) throw new Error("nothing was scraped");
    return new Span(this.history, first, last);
  }

  /** Since the server's start. */
  get always(): Span {
    return new Span(this.history, this.history.start, this.all.to);
  }
}
