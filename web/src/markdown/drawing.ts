// The blocks of a reply as elements of the page.

import type { Block, Code, Heading, Leaf, List, Paragraph, Row } from "./block";
import { type BlockSink, LONG } from "./blocks";
import { CodeView } from "./code";
import { direction } from "./direction";
import type { Inline } from "./inline";
import { Prose } from "./prose";
import { Scrollers } from "./scrollers";
import { cells } from "./starts";
import { TaskBox } from "./task";

/** Longer code is not coloured: it would take too long at once. */
const LONGEST_COLOURED = 20_000;

/** Headings of a reply stand below the page's own. */
const HEADING_SHIFT = 2;

/** A paragraph that will turn out to define a link is not shown first. */
const DEFINING = /^\[(?:[^[\]\\]|\\.)*(?:$|\]$|\]:)/;

/** The line that may become a table's header. */
const HEADER = /(?:^|\n)[ \t]*\|[^\n]*\n?$/;

type Texts = Paragraph | Heading;

interface Open {
  block: Block;
  element: HTMLElement;
  prose: Prose | null;
  code: CodeView | null;
  task: TaskBox | null;
}

export class Drawing implements BlockSink {
  readonly #root: HTMLElement;
  readonly #inline: Inline;
  readonly #scrollers = new Scrollers();
  /** The open blocks' elements, outermost first. */
  readonly #open: Open[] = [];
  /** The innermost block has text that is not drawn yet. */
  #stale = false;
  /** Texts that links defined later may change. */
  #referring: Prose[] = [];

  constructor(root: HTMLElement, inline: Inline) {
    this.#root = root;
    this.#inline = inline;
  }

  open(block: Block): void {
    const code = block.kind === "code" ? new CodeView(block) : null;
    const element = block.kind === "code" ? (code as CodeView).element : elementOf(block);
    const parent = this.#open.at(-1);
    (parent ? inner(parent, block) : this.#root).append(block.kind === "table" ? this.#scroller(element) : element);
    if (code) this.#scrollers.add(code.scroller);
    const prose = block.kind === "paragraph" || block.kind === "heading" ? new Prose(element, this.#inline) : null;
    const task = block.kind === "paragraph" && block.first ? new TaskBox(element) : null;
    this.#open.push({ block, element, prose, code, task });
    this.#stale = false;
  }

  grow(leaf: Leaf, added: string): void {
    const open = this.#open.at(-1);
    open?.code?.grow(added);
    open?.prose?.freeze(leaf.text);
    this.#direct(added);
    this.#stale = true;
  }

  close(block: Block): void {
    const open = this.#open.pop();
    this.#stale = false;
    if (!open) return;
    if (block.kind === "paragraph" || block.kind === "heading") this.#closeTexts(open, block);
    else if (block.kind === "row") this.#row(open.element, block, true);
    else if (open.code && block.kind === "code") this.#colour(open.code, block);
  }

  drop(_: Leaf): void {
    this.#open.pop()?.element.remove();
    this.#stale = false;
  }

  loosen(list: List): void {
    this.#open.find(({ block }) => block === list)?.element.classList.remove("md-tight");
  }

  /** Draws what has grown since the last time. */
  draw(): void {
    const open = this.#open.at(-1);
    if (!this.#stale || !open) return;
    this.#stale = false;
    const { block } = open;
    if (block.kind === "row") this.#row(open.element, block, false);
    else if (block.kind === "paragraph" || block.kind === "heading") {
      const text = block.text.length > LONG ? block.text : held(block);
      open.prose?.draw(text, open.task?.read(text, false));
    }
  }

  /** Draws again one text in which a link may since have been defined; false when there is none left. */
  refer(): boolean {
    this.#referring.pop()?.refer();
    return this.#referring.length > 0;
  }

  /** Lets go of the elements. */
  end(): void {
    this.#scrollers.end();
  }

  /** What stands around a text runs as its first letter does: the side of bullets and of a quote's line. */
  #direct(text: string): void {
    const around = this.#open.filter(({ block, element }) => !("text" in block) && element.dir === "");
    const found = around.length > 0 && direction(text);
    if (found) for (const { element } of around) element.dir = found;
  }

  #closeTexts({ prose, task }: Open, block: Texts): void {
    if (prose?.close(block.text, task?.read(block.text, true))) this.#referring.push(prose);
  }

  #row(element: HTMLElement, row: Row, whole: boolean): void {
    const texts = cells(whole ? row.text : row.text.slice(0, LONG));
    element.replaceChildren();
    for (const [index, alignment] of row.alignments.entries()) {
      const cell = document.createElement(row.header ? "th" : "td");
      cell.dir = "auto";
      if (row.header) (cell as HTMLTableCellElement).scope = "col";
      if (alignment) cell.className = `md-${alignment}`;
      element.append(cell);
      const text = texts[index] ?? "";
      const prose = new Prose(cell, this.#inline);
      // A line so long is no table a person would read: it is shown as it was written.
      if (row.text.length > LONG) prose.literal(text);
      else if (!whole && index >= texts.length - 1) prose.draw(text);
      else if (prose.close(text) && whole) this.#referring.push(prose);
    }
  }

  #scroller(table: HTMLElement): HTMLElement {
    const scroller = document.createElement("div");
    scroller.className = "md-scroll";
    scroller.role = "group";
    scroller.ariaLabel = "Table";
    scroller.append(table);
    this.#scrollers.add(scroller);
    return scroller;
  }

  #colour(view: CodeView, { text, language }: Code): void {
    if (!language || text.length > LONGEST_COLOURED) return;
    void import("./highlight").then(
      ({ highlight }) => view.paint(highlight(text, language)),
      () => undefined, // the server may be away: the code stays as it is
    );
  }
}

/** What of an open text is shown already. */
function held(block: Texts): string {
  if (block.kind === "heading") return block.text;
  return DEFINING.test(block.text) ? "" : block.text.replace(HEADER, "");
}

/** Where a child of an open block goes. */
function inner({ element }: Open, child: Block): HTMLElement {
  if (child.kind !== "row" || !(element instanceof HTMLTableElement)) return element;
  return child.header ? element.createTHead() : (element.tBodies[0] ?? element.createTBody());
}

function elementOf(block: Exclude<Block, Code>): HTMLElement {
  const element = document.createElement(tagOf(block));
  if (block.kind === "paragraph" || block.kind === "heading") element.dir = "auto";
  if (block.kind === "list") {
    element.className = "md-tight";
    if (block.start !== null && block.start !== 1) (element as HTMLOListElement).start = block.start;
  }
  return element;
}

function tagOf(block: Exclude<Block, Code>): string {
  switch (block.kind) {
    case "quote":
      return "blockquote";
    case "list":
      return block.start === null ? "ul" : "ol";
    case "item":
      return "li";
    case "paragraph":
      return "p";
    case "heading":
      return `h${Math.min(6, block.level + HEADING_SHIFT)}`;
    case "table":
      return "table";
    case "row":
      return "tr";
    case "rule":
      return "hr";
  }
}
