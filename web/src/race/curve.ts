// A lane as a curve: how many tokens there were at each moment.

import type { Lane } from "./lane";

/** Seconds and tokens, each [n]; begins at nothing, and the times grow. */
export function curve({ marks, total, figures }: Lane): [seconds: number[], tokens: number[]] {
  const points = new Map([[0, 0]]);
  let tokens = 0;
  for (const mark of marks) {
    tokens += mark.tokens;
    points.set(mark.at / 1000, tokens);
  }
  if (total !== null) points.set(total / 1000, figures.tokens); // the token that ends a reply has no text
  return [[...points.keys()], [...points.values()]];
}
