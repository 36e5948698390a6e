// Running text within a block: what is drawn for good, and behind it what may still change.

import { calm } from "./calm";
import { type Inline, plain } from "./inline";
import type { Ending } from "./series";
import { stretches } from "./shorten";

/** What the reply's texts have in common. */
export interface Texts {
  readonly inline: Inline;
  /** Those that links defined later may change. */
  readonly referring: Prose[];
}

/** A stretch of text that was read on its own. */
interface Stretch {
  text: string;
  nodes: ChildNode[];
  /** Links that were defined when it was drawn. */
  definitions: number;
}

export class Prose {
  readonly host: HTMLElement;
  readonly #texts: Texts;
  readonly #done: Stretch[] = [];
  #rest: Stretch[] = [];

  constructor(host: HTMLElement, texts: Texts) {
    this.host = host;
    this.#texts = texts;
  }

  /** Draws what stands behind that which is drawn for good; stretches that are as they were stay. */
  draw(text: string, ending: Ending): void {
    if (ending === "later") return;
    const parts = stretches(text);
    const end = parts.pop() ?? "";
    parts.push(ending === "open" ? calm(end) : end.trimEnd());
    const same = parts.findIndex((part, index) => part !== this.#rest[index]?.text);
    this.#clear(same < 0 ? parts.length : same);
    for (const part of parts.slice(this.#rest.length)) this.#rest.push(this.#add(part));
    const refers = (stretch: Stretch) => stretch.text.includes("[");
    if (ending === "done" && [...this.#done, ...this.#rest].some(refers)) this.#texts.referring.push(this);
  }

  /** The first stretch is drawn for good. */
  keep(text: string): void {
    if (this.#rest[0]?.text !== text) {
      this.#clear(0);
      this.#rest = [this.#add(text)];
    }
    this.#done.push(...this.#rest.splice(0, 1));
  }

  /** Reads again what was read before a link was defined. */
  refer(): void {
    const { inline } = this.#texts;
    for (const stretch of [...this.#done, ...this.#rest]) {
      if (stretch.definitions === inline.definitions || !stretch.text.includes("[")) continue;
      const fragment = this.#read(stretch.text);
      const nodes = [...fragment.childNodes];
      stretch.nodes[0]?.before(fragment);
      for (const node of stretch.nodes) node.remove();
      Object.assign(stretch, { nodes, definitions: inline.definitions });
    }
  }

  /** The text as it is written. */
  literal(text: string): void {
    this.host.append(plain(text));
  }

  #clear(from: number): void {
    for (const { nodes } of this.#rest.splice(from)) for (const node of nodes) node.remove();
  }

  #add(text: string): Stretch {
    const fragment = this.#read(text);
    const nodes = [...fragment.childNodes];
    this.host.append(fragment);
    return { text, nodes, definitions: this.#texts.inline.definitions };
  }

  /** A line's end between stretches is a break as within them. */
  #read(text: string): DocumentFragment {
    const line = text.replace(/\n$/, "");
    const fragment = this.#texts.inline.read(line);
    if (line !== text) fragment.append(document.createElement("br"));
    return fragment;
  }
}
