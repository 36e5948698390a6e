// Steps, trees and tokens in words.

import type { Step, StepTree } from "../wire/events";
import { milliseconds, plural, whole } from "./format";
import { originOf } from "./origins";
import { reasonOf } from "./reasons";

const CLIPPED = 12; // characters of a token in a drawing; longer ones end in an ellipsis
const MARKS: Readonly<Record<string, string>> = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍" };
// What would have no shape or change its neighbours' order: controls, and the marks of writing direction.
const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** A token so that blanks can be seen. */
export function visible(text: string): string {
  return text.replace(/[ \n\t\r]/g, (blank) => MARKS[blank] ?? blank).replace(UNSEEN, "·");
}

/** The same, short enough for a node of a drawing. */
export function clipped(text: string): string {
  const characters = [...visible(text.slice(0, 4 * CLIPPED))];
  return characters.length > CLIPPED ? `${characters.slice(0, CLIPPED - 1).join("")}…` : characters.join("");
}

/** One step's figures; index: steps before it. */
export function stepSentence(step: Step, index: number): string {
  const checked =
    step.drafted === 0
      ? "no guess was checked"
      : `${step.accepted} of ${plural(step.drafted, "guess", "guesses")} right`;
  return `Step ${whole(index + 1)}: ${checked}, ${plural(step.emitted, "token")} in ${milliseconds(step.ms)}.`;
}

/** Why the step verified as much as it did. */
export function reasonSentence(step: Step): string {
  const { name, sentence } = reasonOf(step.reason);
  return `Reason: ${name}; ${sentence}`;
}

/** A tree in one sentence. */
export function treeSentence(step: Step): string {
  const count = `${plural(step.nodes, "node")}, ${step.accepted} accepted`;
  const parts = step.tokens.map(({ text, source }) => `${visible(text)} (${originOf(source).label})`);
  return parts.length > 0 ? `${count}: ${parts.join(", then ")}.` : `${count}.`;
}

/** What became of a node. */
export function verdict(tree: StepTree, node: number, right: ReadonlySet<number>): string {
  if (node === 0) return "pending token";
  if (right.has(node)) return "accepted";
  return right.has(tree.parents[node] ?? 0) ? "rejected" : "behind a rejected one";
}

/** A probability without its leading zero, as in ".82". */
export function probability(value: number): string {
  return value >= 0.995 ? "1.0" : value.toFixed(2).replace(/^0/, "");
}
