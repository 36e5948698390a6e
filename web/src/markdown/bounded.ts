// What is common to how blocks and lines are read: nothing goes arbitrarily deep.

import { Tokenizer } from "marked";

export class BoundedTokenizer extends Tokenizer<string, string> {
  readonly #deepest: number;
  #depth = 0;

  constructor(deepest: number) {
    super();
    this.#deepest = deepest;
  }

  /** What `read` finds, unless that would be too deep: then it is text. */
  protected within<T>(read: () => T): T | undefined {
    if (this.#depth >= this.#deepest) return undefined;
    this.#depth += 1;
    try {
      return read();
    } finally {
      this.#depth -= 1;
    }
  }
}
