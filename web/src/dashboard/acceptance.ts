// How many guesses were right, by who made them and how deep in the tree they stood.

import FAMILIES from "./families.json";
import type { Named, Span } from "./span";

const MOST_DEPTHS = 256; // a table with more columns is none; the server's trees have up to 64 nodes

export interface Guesses {
  drafted: number;
  accepted: number;
}

export interface Guesser {
  /** The drafter; "all" for the guesses of all, each counted once. */
  name: string;
  total: Guesses;
  /** From depth 1, a guess right below the pending token, to the deepest that anyone made. */
  depths: readonly Guesses[];
}

/** All together first, then the drafters in the server's order; none when no guess was made. */
export function acceptance(span: Span): Guesser[] {
  const all = depthsOf(span, FAMILIES.drafted, FAMILIES.accepted, {});
  const deepest = all.findLastIndex(({ drafted }) => drafted > 0) + 1;
  if (deepest === 0) return [];
  const names = [...span.by(FAMILIES.drafterDrafted, "drafter")].filter(([, drafted]) => drafted > 0);
  const each = names.map(([drafter]): [string, Guesses[]] => [
    drafter,
    depthsOf(span, FAMILIES.drafterDrafted, FAMILIES.drafterAccepted, { drafter }),
  ]);
  return [["all", all] satisfies [string, Guesses[]], ...each].map(([name, depths]) => ({
    name,
    total: depths.reduce(added, { drafted: 0, accepted: 0 }),
    depths: Array.from({ length: deepest }, (_, index) => depths[index] ?? { drafted: 0, accepted: 0 }),
  }));
}

function depthsOf(span: Span, drafted: Named, accepted: Named, where: Readonly<Record<string, string>>): Guesses[] {
  const made = span.by(drafted, "depth", where);
  const right = span.by(accepted, "depth", where);
  const deepest = Math.max(0, ...[...made.keys()].map(Number).filter((depth) => depth <= MOST_DEPTHS));
  return Array.from({ length: deepest }, (_, index) => {
    const depth = String(index + 1);
    return { drafted: made.get(depth) ?? 0, accepted: right.get(depth) ?? 0 };
  });
}

function added(sum: Guesses, { drafted, accepted }: Guesses): Guesses {
  return { drafted: sum.drafted + drafted, accepted: sum.accepted + accepted };
}

/** null where nothing was guessed. */
export function shareOf({ drafted, accepted }: Guesses): number | null {
  return drafted === 0 ? null : accepted / drafted;
}
