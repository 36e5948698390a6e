// One reply's Markdown: text in, elements out, without waiting for anything.

import { Blocks } from "./blocks";
import { Drawing } from "./drawing";
import { Inline } from "./inline";
import { Lines } from "./lines";

export class Reply {
  readonly #drawing: Drawing;
  readonly #blocks: Blocks;
  readonly #lines: Lines;

  /** Shows the reply inside `root`. */
  constructor(root: HTMLElement) {
    const inline = new Inline();
    this.#drawing = new Drawing(root, inline);
    this.#blocks = new Blocks(this.#drawing, (text) => inline.define(text));
    this.#lines = new Lines(this.#blocks);
  }

  /** More of the text; complete blocks are drawn. */
  push(text: string): void {
    this.#lines.push(text);
  }

  /** Draws the open end too. */
  draw(): void {
    this.#lines.settle();
    this.#drawing.draw();
  }

  /** The text is over. */
  finish(): void {
    this.#lines.finish();
    this.#blocks.finish();
  }

  /** After the end: sees to one text with links that were defined later; false when all are right. */
  refer(): boolean {
    return this.#drawing.refer();
  }

  /** Lets go of the elements. */
  end(): void {
    this.#drawing.end();
  }
}
