// What the races for this reply came to.

import { decimal, milliseconds } from "../shell/format";
import { Scrolling } from "../shell/scrolling";
import type { Row } from "./results";

export function Table({ rows }: { rows: readonly Row[] }) {
  return (
    <div>
      <h2>Races for this reply</h2>
      <p class="race-quiet">Medians, by drafter and largest tree; change these and race again to compare.</p>
      <Scrolling class="race-scroll" label="Table of the races">
        <table>
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
      </Scrolling>
    </div>
  );
}
