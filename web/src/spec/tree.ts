// What a step's tree says. Trees come from outside: only those for which `isSound` holds are read by the others.

import type { Step, StepTree } from "../wire/events";

export type StepToken = Step["tokens"][number];

const MOST_NODES = 256; // the server verifies up to 64; more is not a tree that a page should lay out
const LONGEST_TEXT = 1000; // characters of one token; a step is kept long after it was drawn

/** Whether parents come before children, all lists are as long, and the path leads from the root downwards. */
export function isSound(tree: StepTree): boolean {
  const { texts, parents, sources, estimates, chances, path } = tree;
  const size = texts.length;
  if (size < 1 || size > MOST_NODES) return false;
  if ([parents, sources, estimates, chances].some(({ length }) => length !== size)) return false;
  if (parents.some((parent, node) => (node === 0 ? parent !== -1 : !(parent >= 0 && parent < node)))) return false;
  return path.length > 0 && path.every((node, place) => (place === 0 ? node === 0 : parents[node] === path[place - 1]));
}

/** The step with its tree left out where it is none, and with texts that are no token's cut. */
export function soundStep(step: Step): Step {
  const tree = step.tree && isSound(step.tree) ? step.tree : null;
  const long = (text: string) => text.length > LONGEST_TEXT;
  if (!tree?.texts.some(long) && !step.tokens.some(({ text }) => long(text))) {
    return tree === step.tree ? step : { ...step, tree };
  }
  const cut = (text: string) => text.slice(0, LONGEST_TEXT);
  return {
    ...step,
    tree: tree && { ...tree, texts: tree.texts.map(cut) },
    tokens: step.tokens.map(({ text, source }) => ({ text: cut(text), source })),
  };
}

/** Of each node, how many guesses lie between it and the pending token, itself included: [n]. */
export function depthsOf(tree: StepTree): number[] {
  const depths: number[] = [];
  for (const parent of tree.parents) depths.push(parent < 0 ? 0 : (depths[parent] ?? 0) + 1);
  return depths;
}

/** The model's own token behind the accepted ones, or null where the reply was cut before it. */
export function ownToken(step: Step): StepToken | null {
  return step.tokens[step.accepted] ?? null;
}

/** The node that the step's token at `place` is; null for the model's own, and where the tree is not known. */
export function nodeOf(step: Step, place: number): number | null {
  return step.tree?.path[place + 1] ?? null;
}

/**
 * What became of a node: the pending token itself; entered by the walk; the same as the model's own token, where the walk
 * stopped because the reply ended with it; not what the model chose; or behind one of those that were not entered.
 */
export type Fate = "pending" | "accepted" | "met" | "rejected" | "unreached";

/** Of each node of the step's tree: [n]. The server counts those that are met among those that are not accepted. */
export function fatesOf(step: Step, tree: StepTree): Fate[] {
  const path = new Set(tree.path);
  const met = metNode(step, tree);
  return tree.parents.map((parent, node) => {
    if (node === 0) return "pending";
    if (path.has(node)) return "accepted";
    if (node === met) return "met";
    return path.has(parent) ? "rejected" : "unreached";
  });
}

/** Whether the reply ended with a token that had been guessed. */
export function isMet(step: Step): boolean {
  return step.tree != null && metNode(step, step.tree) !== null;
}

/** Siblings are different tokens, so that one at most is the model's own. */
function metNode(step: Step, tree: StepTree): number | null {
  const own = ownToken(step);
  const last = tree.path[tree.path.length - 1];
  const node = tree.parents.findIndex((parent, child) => parent === last && tree.texts[child] === own?.text);
  return node < 0 ? null : node;
}

/** One guess that was made at a place. */
export interface Guess {
  node: number;
  text: string;
  source: string;
  estimate: number;
  chance: number;
  fate: Fate;
}

/** All guesses for the place that `node` took, or, where it is null, for the place of the model's own token. */
export function guessesFor(step: Step, tree: StepTree, node: number | null): Guess[] {
  const parent = node === null ? tree.path[tree.path.length - 1] : tree.parents[node];
  return fatesOf(step, tree).flatMap((fate, child) =>
    tree.parents[child] === parent && child > 0
      ? [
          {
            node: child,
            text: tree.texts[child] ?? "",
            source: tree.sources[child] ?? "",
            estimate: tree.estimates[child] ?? 0,
            chance: tree.chances[child] ?? 0,
            fate,
          },
        ]
      : [],
  );
}
