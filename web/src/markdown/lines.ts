// A text that comes in pieces: characters and line breaks that come in halves, and lines that may still become anything.

const CONTAINERS = /^(?:[ \t>]|[-+*][ \t]|\d{1,9}[.)][ \t])*/;
const DECIDED = /[^-+*_=#`~>|:.)\d\s]/;

/** Whether the beginning of a line says what the line is: rules, fences, underlines and delimiter rows are told by their last character. */
export function decided(beginning: string): boolean {
  const inner = beginning.slice(CONTAINERS.exec(beginning)?.[0].length ?? 0);
  return !inner.startsWith("```") && !inner.startsWith("~~~") && DECIDED.test(inner);
}

/** Puts halves together. */
export class Pieces {
  #half = "";

  /** The text that is whole with this piece, its lines ended by "\n" alone and without characters that are none. */
  join(piece: string): string {
    const text = this.#half + piece;
    this.#half = /[\r\uD800-\uDBFF]$/.exec(text)?.[0] ?? "";
    return clean(this.#half ? text.slice(0, -1) : text);
  }

  /** What is left when no more comes. */
  rest(): string {
    return clean(this.#half);
  }
}

function clean(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(/\0|\p{Surrogate}/gu, "\uFFFD");
}
