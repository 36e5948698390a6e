// What the races for this reply came to.

import { decimal, milliseconds } from "../spec/format";
import type { Row } from "./results";

export function Table({ rows }: { rows: readonly Row[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a narrow screen scrolls it, and a keyboard must be able to
    <section class="race-table" aria-label="Results" tabIndex={0}>
      <table>
        <caption>Races for this reply: medians, by drafter and largest tree</caption>
        <thead>
          <tr>
            <th scope="col">drafter</th>
            <th scope="col">tree</th>
            <th scope="col">races</th>
            <th scope="col">plain</th>
            <th scope="col">speculating</th>
            <th scope="col">times as fast</th>
            <th scope="col">tokens per step</th>
            <th scope="col">text</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.maxNodes} ${row.mode}`}>
              <th scope="row">{row.mode}</th>
              <td>{row.maxNodes ?? "server’s"}</td>
              <td>{row.runs}</td>
              <td>{milliseconds(row.total("plain"))}</td>
              <td>{milliseconds(row.total("speculating"))}</td>
              <td>{decimal(row.total("plain") / row.total("speculating"))}</td>
              <td>{decimal(row.perStep)}</td>
              <td>{row.identical ? "identical" : "differed"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
