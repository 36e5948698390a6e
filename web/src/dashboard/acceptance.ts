// How many guesses were right, by who made them and how deep in the tree they stood.

import FAMILIES from "./families.json";
import type { Named, Span } from "./span";

const MOST_DEPTHS = 256; // a table with more columns is none; the server's trees have up to 64 nodes

export interface Guesses {
  drafted: number;
  accepted: number;
}

export interface DepthGuesses extends Guesses {
  /** "1" for a guess right below the pending token; "16+" for the deepest that the server counts by itself. */
  depth: string;
  /** Steps that guessed so deep: one guess of a depth at most is right, however many a wide tree has there. */
  steps: number;
}

export interface Guesser {
  /** The drafter; "all" for the guesses of all, each counted once. */
  name: string;
  total: Guesses;
  /** From depth 1 to the deepest that anyone guessed. */
  depths: readonly DepthGuesses[];
}

const ALL = { drafted: FAMILIES.drafted, accepted: FAMILIES.accepted, steps: FAMILIES.draftedSteps };
const EACH = {
  drafted: FAMILIES.drafterDrafted,
  accepted: FAMILIES.drafterAccepted,
  steps: FAMILIES.drafterDraftedSteps,
};

/** All together first, then the drafters in the server's order; none when no guess was made. */
export function acceptance(span: Span): Guesser[] {
  const all = depthsOf(span, ALL, {});
  const deepest = all.findLastIndex(({ drafted }) => drafted > 0) + 1;
  if (deepest === 0) return [];
  const names = [...span.by(EACH.drafted, "drafter")].filter(([, drafted]) => drafted > 0);
  const each = names.map(([drafter]): [string, DepthGuesses[]] => [drafter, depthsOf(span, EACH, { drafter })]);
  return [["all", all] satisfies [string, DepthGuesses[]], ...each].map(([name, depths]) => ({
    name,
    total: depths.reduce<Guesses>(added, { drafted: 0, accepted: 0 }),
    depths: all
      .slice(0, deepest)
      .map(({ depth }, index) => ({ drafted: 0, accepted: 0, steps: 0, ...depths[index], depth })),
  }));
}

function depthsOf(
  span: Span,
  families: Readonly<Record<"drafted" | "accepted" | "steps", Named>>,
  where: Readonly<Record<string, string>>,
): DepthGuesses[] {
  const made = span.by(families.drafted, "depth", where);
  const right = span.by(families.accepted, "depth", where);
  const steps = span.by(families.steps, "depth", where);
  const deepest = Math.max(0, ...[...made.keys()].map(Number).filter((depth) => depth <= MOST_DEPTHS));
  return Array.from({ length: deepest }, (_, index) => {
    const depth = String(index + 1);
    return {
      depth: index + 1 === deepest ? `${depth}+` : depth,
      drafted: made.get(depth) ?? 0,
      accepted: right.get(depth) ?? 0,
      steps: steps.get(depth) ?? 0,
    };
  });
}

function added(sum: Guesses, { drafted, accepted }: Guesses): Guesses {
  return { drafted: sum.drafted + drafted, accepted: sum.accepted + accepted };
}

/** null where there is nothing to have a share of. */
export function shareOf(accepted: number, of: number): number | null {
  return of === 0 ? null : accepted / of;
}
