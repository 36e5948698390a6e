// A made-up reply with its trace, as the server tells it: the same steps for the same seed.

import { depthsOf, type StepToken } from "../../src/spec/tree";
import type { Spec, Step, StepTree } from "../../src/wire/events";

const TEXT =
  "A paceline is a row of riders who take turns at the front. The first rider breaks the wind, and the others save " +
  "their strength behind. Speculative decoding is like that:\nsmall guesses ride ahead, and the model checks them all " +
  "in one pass. A guess that is right costs nothing; a wrong one is dropped, and the model’s own word takes its place. ";
const DRAFTERS = ["suffix", "recurrent", "suffix+recurrent", "medusa", "draft", "eagle"];
const WRONG = [" the", " a", " riders", ",", " and", " model", "\n", " wind", " guess", " that"];
const REASONS = ["best", "best", "best", "budget", "not worth it", "no guesses"];

export interface DemoDelta {
  text: string;
  /** One step, with its tree. */
  spec: Spec & { steps: [Step & { tree: StepTree }] };
}

export interface DemoOptions {
  /** Rows of a step, the pending token's included, where guesses are made at all. */
  nodes?: number;
  seed?: number;
}

/** Deltas without end, one for each step. */
export function* demo({ nodes = 16, seed = 1 }: DemoOptions = {}): Generator<DemoDelta, never> {
  const random = generator(seed);
  const words = TEXT.match(/\n|\s?[^\s]+| $/g) ?? [];
  const word = (at: number) => words[at % words.length] ?? "";
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)] ?? "";
  let at = 1;
  for (;;) {
    const reason = pick(REASONS);
    const plain = reason === "no guesses" || reason === "not worth it";
    const tree = grow(plain ? 1 : nodes, word(at - 1), (depth) => word(at + depth - 1), random, pick);
    const accepted = tree.path.length - 1;
    const own = { text: word(at + accepted), source: "" };
    const tokens = tokensOf(tree, own);
    at += tokens.length;
    const size = tree.texts.length;
    const counts = { drafted: size - 1, accepted, emitted: tokens.length };
    const step = { ms: 8 + size * 0.25 + random() * 2, nodes: size, reason, tokens, tree, ...counts };
    const spans = tokens.map(({ text, source }): [number, string] => [[...text].length, source]);
    yield { text: tokens.map(({ text }) => text).join(""), spec: { ...counts, steps: [step], spans } };
  }
}

/** What a step brings: the guesses on its tree's path, and the model's own token behind them. */
export function tokensOf({ texts, sources, path }: StepTree, own: StepToken): StepToken[] {
  return [...path.slice(1).map((node) => ({ text: texts[node] ?? "", source: sources[node] ?? "" })), own];
}

/** The first `steps` of it. */
export function demoDeltas(steps: number, options?: DemoOptions): DemoDelta[] {
  const reply = demo(options);
  return Array.from({ length: steps }, () => reply.next().value);
}

/** A tree whose guesses at each depth hold the right word now and then. */
function grow(
  nodes: number,
  root: string,
  truth: (depth: number) => string,
  random: () => number,
  pick: (list: readonly string[]) => string,
): StepTree {
  const tree: StepTree = { texts: [root], parents: [-1], sources: [""], estimates: [1], chances: [1], path: [0] };
  while (tree.texts.length < nodes) {
    const size = tree.texts.length;
    const last = tree.path[tree.path.length - 1] ?? 0;
    const parent = random() < 0.4 ? last : Math.floor(random() * size);
    const depth = (depthsOf(tree)[parent] ?? 0) + 1;
    const right = parent === last && random() < 0.45;
    const estimate = right ? 0.4 + random() * 0.6 : random() * 0.6;
    tree.texts.push(right ? truth(depth) : `${pick(WRONG)}${size}`);
    tree.parents.push(parent);
    tree.sources.push(pick(DRAFTERS));
    tree.estimates.push(estimate);
    tree.chances.push(estimate * (0.6 + random() * 0.4));
    if (right) tree.path.push(size);
  }
  return tree;
}

/** mulberry32: the next number of [0, 1) at each call. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
