// A place in one line, counted in characters and in columns: a tab runs to the next multiple of four.

const TAB = 4;

export class Cursor {
  readonly line: string;
  /** False while more of the line may come; then it is not blank. */
  readonly whole: boolean;
  #offset = 0;
  #column = 0;
  /** Columns of a tab at the place that are already behind it. */
  #inTab = 0;

  constructor(line: string, whole: boolean) {
    this.line = line;
    this.whole = whole;
  }

  /** Columns of white space ahead. */
  get indent(): number {
    let column = this.#column;
    for (let at = this.#offset; at < this.line.length; at += 1) {
      if (this.line[at] === " ") column += 1;
      else if (this.line[at] === "\t") column += TAB - (column % TAB);
      else break;
    }
    return column - this.#column;
  }

  /** Only white space is left. */
  get blank(): boolean {
    return this.whole && this.rest === "";
  }

  /** What follows the white space ahead. */
  get rest(): string {
    let at = this.#offset;
    while (this.line[at] === " " || this.line[at] === "\t") at += 1;
    return this.line.slice(at);
  }

  /** Everything ahead; what is left of a tab as spaces. */
  get remainder(): string {
    if (this.#inTab === 0) return this.line.slice(this.#offset);
    return " ".repeat(TAB - (this.#column % TAB)) + this.line.slice(this.#offset + 1);
  }

  /** Goes on by `count` characters that are no tabs. */
  skip(count: number): void {
    this.#offset += count;
    this.#column += count;
  }

  /** Goes on by white space, `columns` at most. */
  space(columns: number): void {
    let left = columns;
    while (left > 0) {
      const char = this.line[this.#offset];
      if (char === " ") {
        this.skip(1);
        left -= 1;
      } else if (char === "\t") {
        const width = TAB - (this.#column % TAB);
        const step = Math.min(left, width);
        this.#column += step;
        left -= step;
        this.#inTab = step < width ? this.#inTab + step : 0;
        if (step === width) this.#offset += 1;
      } else return;
    }
  }
}
