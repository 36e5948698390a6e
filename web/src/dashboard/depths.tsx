// Accepted guesses as a table: a row for each drafter, a column for each depth, a bar in each cell.

import { Scrolling } from "../shell/scrolling";
import { acceptance, type DepthGuesses, shareOf } from "./acceptance";
import type { Spans } from "./board";
import { share, whole } from "./units";

export function Depths({ spans }: { spans: Spans }) {
  const recent = acceptance(spans.recent);
  const guessers = recent.length > 0 ? recent : acceptance(spans.always);
  const when = recent.length > 0 ? "recently" : "since the start";
  return (
    <section class="dashboard-card dashboard-wide" aria-labelledby="dashboard-depths">
      <div>
        <h3 id="dashboard-depths">Guesses accepted</h3>
        <span class="dashboard-note">
          {guessers.length > 0
            ? `of all guesses, and by depth in the tree of the steps that guessed so deep; ${when}`
            : "no guess yet"}
        </span>
      </div>
      {guessers.length > 0 && (
        <Scrolling class="dashboard-scroll" label="Accepted guesses by drafter and depth">
          <table class="dashboard-depths">
            <thead>
              <tr>
                <th scope="col">drafter</th>
                <th scope="col">guesses</th>
                <th scope="col">accepted</th>
                {guessers[0]?.depths.map(({ depth }) => (
                  <th scope="col" key={depth}>
                    <span class="unseen">depth </span>
                    {depth}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {guessers.map(({ name, total, depths }) => (
                <tr key={name} data-drafter={name}>
                  <th scope="row">{name}</th>
                  <td>{whole(total.drafted)}</td>
                  <td>{share(shareOf(total.accepted, total.drafted))}</td>
                  {depths.map((guesses) => (
                    <Cell key={guesses.depth} guesses={guesses} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolling>
      )}
    </section>
  );
}

function Cell({ guesses: { accepted, steps } }: { guesses: DepthGuesses }) {
  const part = shareOf(accepted, steps);
  return (
    <td class="dashboard-depth">
      {share(part)}
      {part !== null && (
        <span class="dashboard-note">
          {whole(accepted)} of {whole(steps)}
        </span>
      )}
      <div>
        <i style={{ height: `${(part ?? 0) * 100}%` }} />
      </div>
    </td>
  );
}
