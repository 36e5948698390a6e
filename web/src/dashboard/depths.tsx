// Accepted guesses as a table: a row for each drafter, a column for each depth, a bar in each cell.

import { Scrolling } from "../shell/scrolling";
import { acceptance, type Guesses, shareOf } from "./acceptance";
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
          {guessers.length > 0 ? `by drafter and by depth in the tree; ${when}` : "no guess yet"}
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
                {guessers[0]?.depths.map((_, index) => (
                  <th scope="col" key={index}>
                    <span class="unseen">depth </span>
                    {index + 1}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {guessers.map(({ name, total, depths }) => (
                <tr key={name} data-drafter={name}>
                  <th scope="row">{name}</th>
                  <td>{whole(total.drafted)}</td>
                  <td>{share(shareOf(total))}</td>
                  {depths.map((guesses, index) => (
                    <Cell key={index} guesses={guesses} />
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

function Cell({ guesses }: { guesses: Guesses }) {
  const part = shareOf(guesses);
  const title = `${whole(guesses.accepted)} of ${whole(guesses.drafted)}`;
  return (
    <td class="dashboard-depth" title={part === null ? undefined : title}>
      {share(part)}
      <div>
        <i style={{ height: `${(part ?? 0) * 100}%` }} />
      </div>
    </td>
  );
}
