// Where two texts part that should have been the same.

import type { Different } from "./comparison";
import { LANES } from "./plan";

/** found: the first text is the plain lane's. */
export function Difference({ found }: { found: Different }) {
  const rest = { plain: found.first, speculating: found.second };
  return (
    <dl class="race-difference" dir="auto">
      {LANES.map((name) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            …{found.before}
            <mark>{rest[name] || "(ends here)"}</mark>
          </dd>
        </div>
      ))}
    </dl>
  );
}
