// The blocks of a reply as elements of the page.

import type { Token, Tokens } from "marked";
import { DRAWN } from "./blocks";
import { CodeView } from "./code";
import { direction } from "./direction";
import { Prose, type Texts } from "./prose";
import type { Scrollers } from "./scrollers";
import { type Ending, Series, type View } from "./series";
import { blocksOf, openFence, stretches, undrawn } from "./shorten";
import { TableView } from "./table";

/** What the parts of a reply have in common. */
export interface Page extends Texts {
  readonly scrollers: Scrollers;
}

/** Headings of a reply stand below the page's own. */
const HEADING_SHIFT = 2;

/** A paragraph that will turn out to define a link, or to be a task, is not shown first. */
const DEFINING = /^\[(?:[^[\]\\]|\\.)*(?:$|\]$|\]:)/;

/** The line that may become a table's header. */
const HEADER = /(?:^|\n)[ \t]*\|[^\n]*\n?$/;

/** The blocks within an element. */
export function blocksView(host: Element, page: Page): Series<Token> {
  return new Series(host, (token) => viewOf(token, page) as View<Token>);
}

function viewOf(token: Token, page: Page): View<never> {
  switch (token.type) {
    case "list":
      return new ListView(token as Tokens.List, page);
    case "blockquote":
      return new QuoteView(page);
    case "code": {
      const view = new CodeBlock(token as Tokens.Code);
      page.scrollers.add(view.scroller);
      return view;
    }
    case "table": {
      const view = new TableView(token as Tokens.Table, page);
      page.scrollers.add(view.element);
      return view;
    }
    case "hr":
      return { element: document.createElement("hr"), update: ({ type }: Token) => type === "hr" };
    case "def":
      return new Definition(page);
    default:
      return new TextView(tagOf(token), page);
  }
}

/** Shows nothing, and counts from when it cannot change any more. */
class Definition implements View<Tokens.Def> {
  readonly element = document.createTextNode("");
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  update(token: Tokens.Def, ending: Ending): boolean {
    if (token.type !== "def") return false;
    if (ending === "done") this.#page.inline.define(token);
    return true;
  }
}

class TextView implements View<Tokens.Text> {
  readonly element: HTMLElement;
  readonly #prose: Prose;
  #text = "";

  constructor(tag: string, page: Page) {
    this.element = document.createElement(tag);
    this.element.dir = "auto";
    this.#prose = new Prose(this.element, page);
  }

  update(token: Tokens.Text, ending: Ending): boolean {
    if (tagOf(token).toUpperCase() !== this.element.tagName) return false;
    this.#text = undrawn(token.text);
    const held = ending === "open" && this.element.tagName === "P" && !token.text.startsWith(DRAWN);
    this.#prose.draw(held ? heldBack(this.#text) : this.#text, ending);
    return true;
  }

  shed({ text }: Tokens.Text): void {
    const left = undrawn(text).length;
    if (left === this.#text.length) return;
    for (const part of stretches(this.#text).slice(0, -1)) this.#prose.keep(part);
  }
}

/** What of an open paragraph is shown already. */
function heldBack(text: string): string {
  return DEFINING.test(text) ? "" : text.replace(HEADER, "");
}

class QuoteView implements View<Tokens.Blockquote> {
  readonly element = document.createElement("blockquote");
  readonly #blocks: Series<Token>;

  constructor(page: Page) {
    this.#blocks = blocksView(this.element, page);
  }

  update(token: Tokens.Blockquote, ending: Ending): boolean {
    if (token.type !== "blockquote") return false;
    direct(this.element, token);
    this.#blocks.draw(blocksOf(token.tokens), ending);
    return true;
  }

  shed({ tokens }: Tokens.Blockquote): void {
    this.#blocks.shed(blocksOf(tokens));
  }
}

class ListView implements View<Tokens.List> {
  readonly element: HTMLElement;
  readonly #items: Series<Tokens.ListItem>;
  readonly #start: number | "";
  /** Of the items that are drawn for good: how the list begins, and whether there are blank lines in it. */
  #begun = false;
  #loose = false;

  constructor({ ordered, start }: Tokens.List, page: Page) {
    this.element = document.createElement(ordered ? "ol" : "ul");
    this.element.className = "md-tight";
    this.#start = start;
    if (start !== "" && start !== 1) (this.element as HTMLOListElement).start = start;
    this.#items = new Series(this.element, () => new ItemView(page));
  }

  update(token: Tokens.List, ending: Ending): boolean {
    const ordered = this.element.tagName === "OL";
    if (token.type !== "list" || token.ordered !== ordered || !(this.#begun || token.start === this.#start))
      return false;
    direct(this.element, token);
    this.element.classList.toggle("md-tight", !(this.#loose || token.loose));
    this.#items.draw(token.items, ending);
    return true;
  }

  shed({ items }: Tokens.List): void {
    this.#begun = true;
    this.#loose = !this.element.classList.contains("md-tight");
    this.#items.shed(items);
  }
}

class ItemView implements View<Tokens.ListItem> {
  readonly element = document.createElement("li");
  readonly #blocks: Series<Token>;

  constructor(page: Page) {
    this.#blocks = blocksView(this.element, page);
  }

  update({ tokens, task, checked }: Tokens.ListItem, ending: Ending): boolean {
    this.#blocks.draw(blocksOf(tokens), ending);
    const first = this.element.firstElementChild;
    if (task && first && !first.classList.contains("md-task")) {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.disabled = true;
      box.defaultChecked = checked === true;
      box.ariaLabel = checked ? "Done" : "To do";
      first.prepend(box);
      first.classList.add("md-task");
    }
    return true;
  }

  shed({ tokens }: Tokens.ListItem): void {
    this.#blocks.shed(blocksOf(tokens));
  }
}

class CodeBlock extends CodeView implements View<Tokens.Code> {
  /** What is shown of the text that comes. */
  #shown = "";

  constructor(token: Tokens.Code) {
    super(languageOf(token));
  }

  update(token: Tokens.Code, ending: Ending): boolean {
    if (token.type !== "code" || languageOf(token) !== this.language) return false;
    const text = shownCode(token, ending);
    if (!text.startsWith(this.#shown)) {
      this.clear();
      this.#shown = "";
    }
    this.grow(text.slice(this.#shown.length));
    if (text !== this.#shown && !isOpen(token, ending)) this.paint();
    this.#shown = text;
    return true;
  }

  shed(kept: Tokens.Code): void {
    this.#shown = shownCode(kept, "open");
  }
}

/** Whether more code may come. */
function isOpen({ codeBlockStyle, raw }: Tokens.Code, ending: Ending): boolean {
  return ending !== "done" && (codeBlockStyle === "indented" || openFence(raw) !== null);
}

/** Code whose last line break is there once it is complete. */
function shownCode(token: Tokens.Code, ending: Ending): string {
  return token.text.replace(/\n$/, "") + (token.text === "" || isOpen(token, ending) ? "" : "\n");
}

function languageOf({ lang }: Tokens.Code): string {
  return /^\S*/.exec(lang ?? "")?.[0] ?? "";
}

function tagOf(token: Token): string {
  if (token.type === "heading") return `h${Math.min(6, token.depth + HEADING_SHIFT)}`;
  return token.type === "paragraph" || token.type === "text" ? "p" : "";
}

/** What stands around a text runs as its first letter does: the side of bullets and of a quote's line. */
function direct(element: HTMLElement, { raw }: { raw: string }): void {
  const found = element.dir === "" && direction(raw);
  if (found) element.dir = found;
}
