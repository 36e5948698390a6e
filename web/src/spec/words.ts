// Steps, trees and tokens in words.

import { milliseconds, plural, whole } from "../shell/format";
import type { Step } from "../wire/events";
import { originOf } from "./origins";
import { reasonOf } from "./reasons";
import { type Fate, isMet } from "./tree";

const CLIPPED = 12; // characters of a token in a drawing; longer ones end in an ellipsis
const LONGEST = 80; // and of one in words or in a table
const MOST_TOKENS = 24; // in a sentence
const MARKS: Readonly<Record<string, string>> = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍" };
// What would have no shape or change its neighbours' order: controls, and the marks of writing direction.
const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** A token so that blanks can be seen; a long one cut, since who sends it may be anybody. */
export function visible(text: string): string {
  return marked(text, LONGEST);
}

/** The same, short enough for a node of a drawing. */
export function clipped(text: string): string {
  let shown = marked(text, CLIPPED);
  for (let most = CLIPPED - 1; cells(shown) > CLIPPED; most -= 1) shown = marked(text, most);
  return shown;
}

// Characters that are as wide as two where all others have one width: East Asian ones and pictures.
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** How wide a text is in a font of one width, in characters of Latin. */
export function cells(text: string): number {
  return [...text].reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);
}

function marked(text: string, most: number): string {
  const characters = [...text.slice(0, 4 * most)]; // a character may be several code units, and no more of it is read
  const shown = characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : characters.join("");
  return shown.replace(/[ \n\t\r]/g, (blank) => MARKS[blank] ?? blank).replace(UNSEEN, "·");
}

/** One step's figures; index: steps before it. */
export function stepSentence(step: Step, index: number): string {
  const checked =
    step.drafted === 0
      ? "no guess was checked"
      : `${step.accepted} of ${plural(step.drafted, "guess", "guesses")} accepted`;
  const met = isMet(step) ? "; the token the reply ended with was guessed too" : "";
  return `Step ${whole(index + 1)}: ${checked}, ${plural(step.emitted, "token")} in ${milliseconds(step.ms)}${met}.`;
}

/** Why the step verified as much as it did. */
export function reasonSentence(step: Step): string {
  const { name, sentence } = reasonOf(step.reason);
  return `Reason: ${name}; ${sentence}`;
}

/** A tree in one sentence. */
export function treeSentence(step: Step): string {
  const count = `${plural(step.nodes, "node")}, ${step.accepted} accepted`;
  const parts = step.tokens
    .slice(0, MOST_TOKENS)
    .map(({ text, source }) => `${visible(text)} (${originOf(source).label})`);
  if (step.tokens.length > MOST_TOKENS) parts.push(plural(step.tokens.length - MOST_TOKENS, "more", "more"));
  const met = isMet(step) ? "; the last one was guessed too, and the reply ended with it" : "";
  return parts.length > 0 ? `${count}: ${parts.join(", then ")}${met}.` : `${count}.`;
}

/** What became of a node, in words. */
export const FATES: Readonly<Record<Fate, string>> = {
  pending: "pending token",
  accepted: "accepted",
  met: "met: the reply ended with it",
  rejected: "rejected",
  unreached: "behind one that was not accepted",
};

/** A probability without its leading zero, as in ".82". */
export function probability(value: number): string {
  return value >= 0.995 ? "1.0" : value.toFixed(2).replace(/^0/, "");
}
