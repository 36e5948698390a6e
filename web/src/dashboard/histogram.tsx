// How one latency, or one size, is spread: bars, and the quantiles as a table.

import type { Spans } from "./board";
import FAMILIES from "./families.json";
import type { Named } from "./span";
import { type Bar, fullest, spread } from "./spread";
import { amount, countMark, meanText, quantileText, seconds, secondsMark, share, type Unit, whole } from "./units";

export interface Spread {
  id: string;
  title: string;
  /** What the numbers under the bars are. */
  marks: string;
  family: Named;
  unit: Unit;
  mark: (bound: number) => string;
}

const LATENCY = { marks: "milliseconds, at most", unit: seconds, mark: secondsMark };
const SIZE = { marks: "at most", unit: amount, mark: countMark };

export const SPREADS: readonly Spread[] = [
  { id: "ttft", title: "Time to first token (TTFT)", family: FAMILIES.ttft, ...LATENCY },
  { id: "tpot", title: "Time per output token (TPOT)", family: FAMILIES.tpot, ...LATENCY },
  { id: "itl", title: "Gap between two deltas", family: FAMILIES.itl, ...LATENCY },
  { id: "queued", title: "Wait for the first step", family: FAMILIES.queued, ...LATENCY },
  { id: "e2e", title: "Whole reply", family: FAMILIES.e2e, ...LATENCY },
  { id: "sequences", title: "Replies in a step", family: FAMILIES.sequences, ...SIZE },
  { id: "rows", title: "Tokens computed in a step", family: FAMILIES.rows, ...SIZE },
];

/** How late the server's own work was: a matter of who runs it. */
export const LAG: Spread = { id: "lag", title: "Event loop late by", family: FAMILIES.lag, ...LATENCY };

/** Nothing where the server does not count this. */
export function Histogram({ shown, spans }: { shown: Spread; spans: Spans }) {
  const { title, family, unit, marks } = shown;
  const recent = spans.recent.distribution(family);
  const always = spans.always.distribution(family);
  if (recent === null || always === null) return null;
  const bars = spread(recent, always);
  const stretches = [
    { id: "recent", name: "recent", of: recent },
    { id: "always", name: "all", of: always },
  ];
  return (
    <figure class="dashboard-card" data-spread={shown.id}>
      <figcaption>
        <h3>{title}</h3>
        <span class="dashboard-note">{bars.length > 0 ? marks : "nothing yet"}</span>
      </figcaption>
      <Bars bars={bars} shown={shown} />
      <table>
        <thead>
          <tr>
            <th scope="col">when</th>
            <th scope="col">count</th>
            <th scope="col">mean</th>
            <th scope="col">p50</th>
            <th scope="col">p95</th>
          </tr>
        </thead>
        <tbody>
          {stretches.map(({ id, name, of }) => (
            <tr key={id} data-stretch={id}>
              <th scope="row">
                <i class={`dashboard-key dashboard-key-${id}`} aria-hidden="true" /> {name}
              </th>
              <td>{whole(of.count)}</td>
              <td>{meanText(of, unit)}</td>
              <td>{quantileText(of, 0.5, unit)}</td>
              <td>{quantileText(of, 0.95, unit)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

function Bars({ bars, shown }: { bars: readonly Bar[]; shown: Spread }) {
  const top = Math.max(...bars.flatMap(({ recentShare, alwaysShare }) => [recentShare, alwaysShare]));
  const most = fullest(bars);
  const height = (of: number) => ({ height: `${(100 * of) / top}%` });
  const summary = most
    ? `${shown.title}: most lie in the bar up to ${shown.unit(most.bound)}, ${share(most.recentShare || most.alwaysShare)} of them`
    : `${shown.title}: nothing yet`;
  return (
    <div class="dashboard-bars" role="img" aria-label={summary}>
      {bars.map(({ bound, recentShare, alwaysShare }) => (
        <div key={bound}>
          <div class="dashboard-bar">
            <i class="dashboard-recent" style={height(recentShare)} />
            <i class="dashboard-always" style={height(alwaysShare)} />
          </div>
          <span class="dashboard-mark">{shown.mark(bound)}</span>
        </div>
      ))}
    </div>
  );
}
