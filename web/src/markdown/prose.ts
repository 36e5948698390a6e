// Running text within a block: what is complete is drawn once, only its open end again and again.

import { LONG } from "./blocks";
import { calm } from "./calm";
import { type Inline, plain } from "./inline";

/** A stretch of text that was read on its own. */
interface Stretch {
  text: string;
  nodes: ChildNode[];
  /** Links that were defined when it was drawn. */
  definitions: number;
}

export class Prose {
  readonly #host: HTMLElement;
  readonly #inline: Inline;
  readonly #done: Stretch[] = [];
  /** Where the open end begins. */
  #from = 0;
  #tail: ChildNode[] = [];

  constructor(host: HTMLElement, inline: Inline) {
    this.#host = host;
    this.#inline = inline;
  }

  /** Draws what is long enough to stand for good: each stretch has at most `LONG` characters, and is cut where lines or words end. */
  freeze(text: string): void {
    while (text.length - this.#from > LONG) {
      const window = text.slice(this.#from, this.#from + LONG);
      const end =
        window.lastIndexOf("\n") + 1 || window.lastIndexOf(" ") + 1 || LONG - Number(/[\uD800-\uDBFF]$/.test(window));
      this.#keep(window.slice(0, end));
      this.#from += end;
    }
  }

  /** Draws the open end of a text that still grows, from `skip` on. */
  draw(text: string, skip = 0): void {
    this.#clear();
    this.#tail = this.#add(calm(text.slice(Math.max(this.#from, skip))));
  }

  /** Draws the end of a complete text; true if later definitions may change how it reads. */
  close(text: string, skip = 0): boolean {
    this.freeze(text);
    this.#keep(text.slice(Math.max(this.#from, skip)).trimEnd());
    return this.#done.some((stretch) => stretch.text.includes("["));
  }

  /** Reads again what was read before a link was defined. */
  refer(): void {
    for (const stretch of this.#done) {
      if (stretch.definitions === this.#inline.definitions || !stretch.text.includes("[")) continue;
      const fragment = this.#inline.read(stretch.text);
      const nodes = [...fragment.childNodes];
      stretch.nodes[0]?.before(fragment);
      for (const node of stretch.nodes) node.remove();
      Object.assign(stretch, { nodes, definitions: this.#inline.definitions });
    }
  }

  /** The text as it is written. */
  literal(text: string): void {
    this.#host.append(plain(text));
  }

  #keep(text: string): void {
    this.#clear();
    this.#done.push({ text, nodes: this.#add(text), definitions: this.#inline.definitions });
  }

  #add(text: string): ChildNode[] {
    const fragment = this.#inline.read(text);
    const nodes = [...fragment.childNodes];
    this.#host.append(fragment);
    return nodes;
  }

  #clear(): void {
    for (const node of this.#tail) node.remove();
    this.#tail = [];
  }
}
