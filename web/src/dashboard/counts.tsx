// How replies ended and what HTTP requests were answered, counted since the server started.

import { Scrolling } from "../shell/scrolling";
import FAMILIES from "./families.json";
import type { Named, Span } from "./span";
import { whole } from "./units";

export interface Table {
  id: string;
  title: string;
  note: string;
  family: Named;
  /** The labels that name the rows and the columns. */
  rows: string;
  columns: string;
}

export const REPLIES: Table = {
  id: "replies",
  title: "Replies",
  note: "by protocol and how they ended",
  family: FAMILIES.replies,
  rows: "protocol",
  columns: "outcome",
};

export const ANSWERS: Table = {
  id: "answers",
  title: "HTTP answers",
  note: "by route and status",
  family: FAMILIES.answers,
  rows: "route",
  columns: "status",
};

export function CountTable({ table, span }: { table: Table; span: Span }) {
  const rows = [...span.by(table.family, table.rows)];
  const columns = [...span.by(table.family, table.columns).keys()].sort();
  return (
    <section class="dashboard-card" aria-labelledby={`dashboard-${table.id}`} data-counts={table.id}>
      <div>
        <h3 id={`dashboard-${table.id}`}>{table.title}</h3>
        <span class="dashboard-note">{rows.length > 0 ? `${table.note}; since the start` : "none yet"}</span>
      </div>
      {rows.length > 0 && (
        <Scrolling class="dashboard-scroll" label={`${table.title} ${table.note}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{table.rows}</th>
                {columns.map((name) => (
                  <th scope="col" key={name}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(([name]) => {
                const counts = span.by(table.family, table.columns, { [table.rows]: name });
                return (
                  <tr key={name}>
                    <th scope="row" class="dashboard-name">
                      {name}
                    </th>
                    {columns.map((column) => (
                      <td key={column}>{whole(counts.get(column) ?? 0)}</td>
                    ))}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </Scrolling>
      )}
    </section>
  );
}
