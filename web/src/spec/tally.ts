// Sums over all steps of a reply: what is left of those that are no longer kept, and what trees are tuned by.

import type { Step, StepTree } from "../wire/events";
import { drafters } from "./origins";
import { depthsOf } from "./tree";

/** Of one drafter; a guess that several had counts for each of them. */
export interface DrafterSums {
  guesses: number;
  accepted: number;
  /** Guesses whose parent was right: only these show how likely a guess was right given its parent. */
  judged: number;
  /** Over the judged: sums of the drafter's own probability, and of what the planner believed. */
  estimates: number;
  chances: number;
}

/** Of one depth in the tree; 1 is right behind the pending token. */
export interface DepthSums {
  guesses: number;
  /** Steps that guessed so deep, and those in which a guess of this depth was accepted. */
  steps: number;
  accepted: number;
}

const MOST_NAMES = 16; // names come from the server; past these they share one entry
const OTHERS = "others";

export class Tally {
  readonly drafters = new Map<string, DrafterSums>();
  /** [0] is depth 1. */
  readonly depths: DepthSums[] = [];
  /** Tokens by source; null: of deltas that told no steps. */
  readonly tokens = new Map<string | null, number>();
  steps = 0;
  /** Steps that came with their tree, which alone count for drafters and depths. */
  trees = 0;
  /** Steps for which nobody was allowed to guess, and those that read the prompt, for which nobody ever is. */
  off = 0;
  prefill = 0;

  /** One delta: its steps, and how many tokens it brought. */
  add(steps: readonly Step[], emitted: number): void {
    if (steps.length === 0 && emitted > 0) this.#count(null, emitted);
    for (const step of steps) {
      this.steps += 1;
      if (step.reason === "off") this.off += 1;
      if (step.reason === "prefill") this.prefill += 1;
      for (const token of step.tokens) this.#count(token.source, 1);
      if (step.tree) this.#addTree(step.tree);
    }
  }

  #count(source: string | null, tokens: number): void {
    const name = source === null ? null : known(this.tokens, source);
    this.tokens.set(name, (this.tokens.get(name) ?? 0) + tokens);
  }

  #addTree(tree: StepTree): void {
    this.trees += 1;
    const right = new Set(tree.path);
    const depths = depthsOf(tree);
    for (let node = 1; node < tree.texts.length; node += 1) {
      const judged = right.has(tree.parents[node] ?? 0);
      for (const name of drafters(tree.sources[node] ?? "")) {
        const sums = this.#drafter(name);
        sums.guesses += 1;
        if (right.has(node)) sums.accepted += 1;
        if (!judged) continue;
        sums.judged += 1;
        sums.estimates += tree.estimates[node] ?? 0;
        sums.chances += tree.chances[node] ?? 0;
      }
      this.#depth(depths[node] ?? 1).guesses += 1;
    }
    const deepest = depths.reduce((most, depth) => Math.max(most, depth), 0);
    for (let depth = 1; depth <= deepest; depth += 1) {
      const sums = this.#depth(depth);
      sums.steps += 1;
      if (depth < tree.path.length) sums.accepted += 1;
    }
  }

  #drafter(name: string): DrafterSums {
    const key = known(this.drafters, name);
    const sums = this.drafters.get(key) ?? { guesses: 0, accepted: 0, judged: 0, estimates: 0, chances: 0 };
    this.drafters.set(key, sums);
    return sums;
  }

  #depth(depth: number): DepthSums {
    while (this.depths.length < depth) this.depths.push({ guesses: 0, steps: 0, accepted: 0 });
    return this.depths[depth - 1] as DepthSums;
  }
}

function known(sums: ReadonlyMap<string | null, unknown>, name: string): string {
  return sums.has(name) || sums.size < MOST_NAMES ? name : OTHERS;
}
