// Why the planner had as many guesses verified as it did: a share of the trees for each reason, in plain words.

import { reasonOf } from "../spec/reasons";
import type { Spans } from "./board";
import FAMILIES from "./families.json";
import type { Span } from "./span";
import { share, whole } from "./units";

export function Choices({ spans }: { spans: Spans }) {
  const recent = choices(spans.recent);
  const shown = recent.length > 0 ? recent : choices(spans.always);
  const total = shown.reduce((sum, { trees }) => sum + trees, 0);
  const when = recent.length > 0 ? "recently" : "since the start";
  return (
    <section class="dashboard-card dashboard-wide" aria-labelledby="dashboard-choices">
      <h3 id="dashboard-choices">What the planner chose</h3>
      <span class="dashboard-note">
        {shown.length > 0 ? `why a reply had as many guesses in a step as it had; ${when}` : "no step yet"}
      </span>
      {shown.length > 0 && (
        <table class="dashboard-choices">
          <thead>
            <tr>
              <th scope="col">reason</th>
              <th scope="col">share</th>
              <th scope="col">trees</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ name, sentence, trees }) => (
              <tr key={name} data-reason={name}>
                <th scope="row">
                  <b>{name}</b>: {sentence}
                  <div>
                    <i style={{ width: `${(100 * trees) / total}%` }} />
                  </div>
                </th>
                <td>{share(trees / total)}</td>
                <td>{whole(trees)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

/** The reasons that there were, the commonest first. */
function choices(span: Span): { name: string; sentence: string; trees: number }[] {
  return [...span.by(FAMILIES.trees, "reason")]
    .filter(([, trees]) => trees > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([label, trees]) => {
      const name = label.replaceAll("_", " ");
      return { name, sentence: reasonOf(name).sentence, trees };
    });
}
