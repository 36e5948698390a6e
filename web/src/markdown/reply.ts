// One reply's Markdown: text in, elements out, without waiting for anything. Of the text only the end is kept, from the
// last block on and of a long block what may still change, so each drawing reads a bounded part of it.

import type { Token } from "marked";
import { Blocks } from "./blocks";
import { blocksView, type Page } from "./drawing";
import { Inline } from "./inline";
import { decided, Pieces } from "./lines";
import { Scrollers } from "./scrollers";
import type { Ending } from "./series";
import { agree, blocksOf, LONG, shorten } from "./shorten";

/** Less is kept of longer text, if that is possible; else when so many times as much is there. */
const MOST = 800;
const GROWTH = 1.5;

/** Longer text of which nothing could be drawn for good waits for its end: a table's row, say. */
const PATIENCE = 4 * LONG;

export class Reply {
  readonly #root: HTMLElement;
  readonly #page: Page = { inline: new Inline(), scrollers: new Scrollers(), referring: [] };
  readonly #blocks = new Blocks();
  readonly #pieces = new Pieces();
  readonly #views;
  /** Whole lines, and the one that is still coming. */
  #text = "";
  #line = "";
  /** Less is kept when they are longer. That depends on the text alone, not on when it is drawn or how it is cut. */
  #mostText = MOST;
  #mostLine = LONG + 1;
  #over = false;

  /** Shows the reply inside `root`. */
  constructor(root: HTMLElement) {
    this.#root = root;
    this.#views = blocksView(root, this.#page);
  }

  /** More of the text; what is complete of a long one is drawn. */
  push(piece: string): void {
    this.#take(this.#pieces.join(piece));
  }

  /** Draws the open end too. */
  draw(): void {
    if (this.#over || this.#text.length + this.#line.length > PATIENCE) return;
    const tokens = this.#blocks.lex(decided(this.#line) ? this.#text + this.#line : this.#text);
    this.#draw(tokens, tokens.at(-1)?.type === "space" ? "blank" : "open");
  }

  /** The text is over. */
  finish(): void {
    this.#take(this.#pieces.rest());
    this.#text += this.#line;
    this.#line = "";
    this.#over = true;
    this.#draw(this.#blocks.lex(this.#text), "done");
  }

  /** After the end: sees to one text with links that were defined later; false when all are right. */
  refer(): boolean {
    const prose = this.#page.referring.pop();
    if (this.#root.contains(prose?.host ?? null)) prose?.refer();
    return this.#page.referring.length > 0;
  }

  /** Lets go of the elements. */
  end(): void {
    this.#page.scrollers.end();
  }

  #draw(tokens: Token[], ending: Ending): void {
    this.#views.draw(blocksOf(tokens), ending);
  }

  #take(text: string): void {
    for (const part of text.split(/(?<=\n)/)) {
      for (let rest = part; rest; ) {
        const room = this.#mostLine - this.#line.length;
        this.#line += rest.slice(0, room);
        rest = rest.slice(room);
        if (this.#line.endsWith("\n")) this.#endLine();
        else if (this.#line.length >= this.#mostLine) this.#longLine();
      }
    }
  }

  #endLine(): void {
    if (this.#text !== "" || this.#line !== "\n") this.#text += this.#line;
    this.#line = "";
    this.#mostLine = LONG + 1;
    if (this.#text.length < this.#mostText) return;
    this.#text = this.#shorten(this.#text);
    this.#mostText = Math.max(MOST, this.#text.length * GROWTH);
  }

  #longLine(): void {
    if (decided(this.#line)) {
      const kept = this.#shorten(this.#text + this.#line);
      const start = kept.lastIndexOf("\n") + 1;
      this.#text = kept.slice(0, start);
      this.#line = kept.slice(start);
    }
    this.#mostLine = Math.max(LONG + 1, Math.ceil(this.#line.length * GROWTH));
  }

  /** Draws the text, and says what has to be kept of it. */
  #shorten(text: string): string {
    const tokens = this.#blocks.lex(text);
    this.#draw(tokens, "later");
    for (const within of [true, false]) {
      const kept = shorten(tokens, text, within);
      const after = kept === text ? [] : this.#blocks.lex(kept);
      if (!agree(tokens, after)) continue;
      this.#views.shed(blocksOf(after));
      return kept;
    }
    return text;
  }
}
