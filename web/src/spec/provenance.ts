// Which token, of which step, each part of the text is. Steps tell their tokens at once; their text may come later (a
// character spread over tokens, a possible stop string), so tokens wait here until the spans of a delta call for them.

import { indexBehind } from "../shell/codepoints";
import type { Step } from "../wire/events";
import { nodeOf } from "./tree";

/** A part of the reply's text: a token's, or what one delta brought where its tokens are not told apart. */
export interface TracedToken {
  text: string;
  /** Drafters joined by "+", "" for the model's own; null where the server did not say. */
  source: string | null;
  /** Steps of the reply before its own; null where that is not known. */
  step: number | null;
  /** Of the step's tree; null for the model's own token, or without a tree. */
  node: number | null;
}

interface Waiting {
  /** What is left of its text. */
  text: string;
  source: string;
  step: number;
  node: number | null;
}

const MOST_WAITING = 256;
const LOOK_AHEAD = 32; // tokens without text of their own before one that has: swallowed marks, parts of a character
const PART = /^bytes:((?:\\x[0-9a-f]{2})+)$/; // how the server names a token that is a part of a character

export class Provenance {
  #waiting: Waiting[] = [];

  /** A step has come; index: how many came before it. */
  came(step: Step, index: number): void {
    step.tokens.forEach(({ text, source }, place) => {
      this.#waiting.push({ text, source, step: index, node: nodeOf(step, place) });
    });
    this.#waiting.splice(0, this.#waiting.length - MOST_WAITING);
  }

  /** A delta's text as tokens; joined they are the text. spans: code points and source, in order; undefined: not told. */
  take(text: string, spans: readonly (readonly [number, string])[] | undefined): TracedToken[] {
    if (text === "") return [];
    if (spans === undefined) {
      this.#waiting = []; // whose text this was cannot be told, and what waited may be part of it
      return [{ text, source: null, step: null, node: null }];
    }
    return cut(text, spans).map(([part, source]) => {
      const token = source === null ? undefined : this.#next(part, source);
      return { text: part, source, step: token?.step ?? null, node: token?.node ?? null };
    });
  }

  /**
   * A delta of thoughts came with so many tokens: of all that wait, only these may have text to come, where a step both
   * ended the thoughts and began the text.
   */
  thought(tokens: number): void {
    this.#waiting.splice(0, this.#waiting.length - Math.min(tokens, LOOK_AHEAD));
  }

  /** The token whose text begins here; those before it had none. */
  #next(text: string, source: string): Waiting | undefined {
    const size = /[^\0-\x7f]/.test(text) ? new TextEncoder().encode(text).length : Number.POSITIVE_INFINITY;
    let bytes = 0; // of the parts of a character passed so far; ASCII has none
    for (const [place, token] of this.#waiting.slice(0, LOOK_AHEAD).entries()) {
      const part = PART.exec(token.text)?.[1];
      if (part !== undefined) bytes += part.length / 4;
      const whole = part !== undefined && bytes >= size;
      if (token.source !== source || !(whole || token.text.startsWith(text) || token.text.endsWith(text))) continue;
      const rest = !whole && token.text.startsWith(text) ? token.text.slice(text.length) : "";
      this.#waiting.splice(0, rest ? place : place + 1);
      token.text = rest;
      return token;
    }
    return undefined;
  }
}

/** The text in parts of so many code points; what the spans do not reach is of unknown source. */
function cut(text: string, spans: readonly (readonly [number, string])[]): [string, string | null][] {
  const parts: [string, string | null][] = [];
  let start = 0;
  for (const [count, source] of spans) {
    const end = start + indexBehind(text.slice(start), count);
    if (end > start) parts.push([text.slice(start, end), source]);
    start = end;
  }
  if (start < text.length) parts.push([text.slice(start), null]);
  return parts;
}
