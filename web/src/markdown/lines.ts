// A text that comes in pieces, line by line: a line is passed on as soon as no later character can change what it is.

/** Takes lines, each perhaps in parts. */
export interface LineSink {
  /** A line begins; `whole` when nothing of it is left to come. */
  begin(line: string, whole: boolean): void;
  /** More of the line that has begun. */
  more(text: string): void;
  /** The line is over. */
  end(): void;
}

/** A line that has left open for so many characters what it is, is text. */
const UNDECIDED = 1000;

const CONTAINERS = /^(?:[ \t>]|[-+*][ \t]|\d{1,9}[.)][ \t])*/;
const DECIDED = /[^-+*_=#`~>|:.)\d\s]/;

/** Whether the beginning of a line says what the line is: rules, fences, underlines and delimiter rows are told by their last character. */
export function decided(beginning: string): boolean {
  const inner = beginning.slice(CONTAINERS.exec(beginning)?.[0].length ?? 0);
  return !inner.startsWith("```") && !inner.startsWith("~~~") && DECIDED.test(inner);
}

export class Lines {
  readonly #sink: LineSink;
  /** The start of a line that is not decided yet. */
  #held = "";
  #begun = false;
  /** Half of a character or of a line break at the end of the last piece. */
  #half = "";

  constructor(sink: LineSink) {
    this.#sink = sink;
  }

  push(piece: string): void {
    let text = this.#half + piece;
    this.#half = /[\r\uD800-\uDBFF]$/.exec(text)?.[0] ?? "";
    if (this.#half) text = text.slice(0, -1);
    this.#take(text);
  }

  /** The text is over. */
  finish(): void {
    this.#take(this.#half);
    this.#half = "";
    if (!this.#begun && this.#held) this.#begin(this.#held, true);
    if (this.#begun) this.#end();
  }

  #take(text: string): void {
    const lines = text
      .replace(/\r\n?/g, "\n")
      .replace(/\0|\p{Surrogate}/gu, "\uFFFD")
      .split("\n");
    for (const [index, part] of lines.entries()) {
      if (index > 0) this.#newline();
      this.#part(part);
    }
  }

  #part(part: string): void {
    if (this.#begun) {
      if (part) this.#sink.more(part);
      return;
    }
    this.#held += part;
    if (this.#held.length >= UNDECIDED) {
      const line = this.#held;
      this.#begin(line.slice(0, UNDECIDED), false);
      if (line.length > UNDECIDED) this.#sink.more(line.slice(UNDECIDED));
    }
  }

  #newline(): void {
    if (!this.#begun) this.#begin(this.#held, true);
    this.#end();
  }

  /** Passes on the line that is still coming, if it is decided: called before drawing, not for each piece. */
  settle(): void {
    if (!this.#begun && decided(this.#held)) this.#begin(this.#held, false);
  }

  #begin(line: string, whole: boolean): void {
    this.#held = "";
    this.#begun = true;
    this.#sink.begin(line, whole);
  }

  #end(): void {
    this.#begun = false;
    this.#sink.end();
  }
}
