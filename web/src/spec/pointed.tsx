// One guess of a drawn tree in words: the one the pointer is over.

import type { Signal } from "@preact/signals";
import type { ShownStep } from "./cursor";
import { originOf } from "./origins";
import { fatesOf, ownToken } from "./tree";
import { FATES, probability, visible } from "./words";

/** Which node of the drawing something belongs to, as `data-node` names it; null: none. */
export function nodeUnder(target: EventTarget | null): string | null {
  const node = target instanceof Element ? target.closest<SVGGElement>("[data-node]") : null;
  return node?.dataset.node ?? null;
}

export interface PointedProps {
  over: Signal<string | null>;
  shown: ShownStep;
}

export function Pointed({ over, shown }: PointedProps) {
  const told = over.value === null ? null : sentence(shown, over.value);
  return <p class="spec-pointed">{told ?? "Point at a guess to see whose it is and how likely it was."}</p>;
}

function sentence({ step }: ShownStep, name: string): string | null {
  const { tree } = step;
  if (name === "own") return `${visible(ownToken(step)?.text ?? "")}: the model’s own token.`;
  const node = Number(name);
  const text = tree?.texts[node];
  if (!tree || text === undefined) return null; // of a step that was looked at before
  if (node === 0) return `${visible(text)}: the pending token, which the guesses follow.`;
  const by = originOf(tree.sources[node] ?? "").label;
  const likely = `estimate ${probability(tree.estimates[node] ?? 0)}, chance ${probability(tree.chances[node] ?? 0)}`;
  return `${visible(text)} by ${by}: ${likely}; ${FATES[fatesOf(step, tree)[node] ?? "rejected"]}.`;
}
