// What was seen, as a table for other programs.

import { type History, valueAt } from "./history";

/**
 * RFC 4180: a line for each scrape, a column for each series under its name on the wire, times in UTC. Counters go on
 * counting where the server was started again; what a gauge did not tell is empty.
 */
export function csv(history: History): string {
  const { columns, rows } = history;
  const names = columns.map(({ name, labels }) => {
    const told = [...labels].map(([label, value]) => `${label}=${JSON.stringify(value)}`).join(",");
    return told === "" ? name : `${name}{${told}}`;
  });
  const lines = [["time", ...names]];
  for (const row of rows) {
    const values = columns
      .map((column) => valueAt(row, column))
      .map((value) => (Number.isNaN(value) ? "" : String(value)));
    lines.push([new Date(row.at * 1000).toISOString(), ...values]);
  }
  return lines.map((line) => `${line.map(field).join(",")}\r\n`).join("");
}

/** Quoted where it must be; a leading sign that a spreadsheet takes for a formula gets a ' before it. */
function field(text: string): string {
  const safe = /^[=+@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
