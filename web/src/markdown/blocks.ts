// The blocks of a Markdown text, line by line, as CommonMark's own algorithm finds them: what a line opens, goes on with and
// closes depends on the blocks that are open and on the line alone, so nothing is read twice.

import type { Block, Code, Leaf, List, Paragraph } from "./block";
import { goesOn, quoted } from "./continues";
import { Cursor } from "./cursor";
import type { LineSink } from "./lines";
import {
  bullet,
  CODE_INDENT,
  cells,
  closes,
  type Define,
  delimiterRow,
  fence,
  headingLevel,
  headingText,
  isRule,
  underlineLevel,
  withoutDefinitions,
} from "./starts";

/** Is told what is found; each block is opened within those that are open. */
export interface BlockSink {
  open(block: Block): void;
  /** The innermost block's text has grown by `added`. */
  grow(leaf: Leaf, added: string): void;
  /** The innermost block is complete. */
  close(block: Block): void;
  /** The innermost block is taken back: it was the beginning of something else, or nothing to show. */
  drop(leaf: Leaf): void;
  /** The list turned out to have blank lines in it. */
  loosen(list: List): void;
}

/** Quotes and items within each other; what would go deeper is text. */
const DEEPEST = 24;

/** A longer paragraph becomes no heading or table any more, and defines no links. */
export const LONG = 2000;

export class Blocks implements LineSink {
  readonly #sink: BlockSink;
  readonly #define: Define;
  /** Each stands in the one before it. */
  readonly #open: Block[] = [];
  /** Where the rest of the line goes. */
  #leaf: Leaf | null = null;
  /** Blank lines after code by indentation. */
  #blanks = "";
  /** The line before was blank, and not within a quote of its own. */
  #afterBlank = false;

  constructor(sink: BlockSink, define: Define) {
    this.#sink = sink;
    this.#define = define;
  }

  begin(line: string, whole: boolean): void {
    const cursor = new Cursor(line, whole);
    this.#leaf = null;
    const matched = this.#match(cursor);
    if (matched === null) return;
    const tip = this.#open.at(-1);
    if (tip?.kind === "code" && matched === this.#open.length) this.#code(cursor, tip);
    else if (cursor.blank) {
      this.#closeTo(matched);
      this.#afterBlank = this.#open.at(-1)?.kind !== "quote";
    } else {
      this.#place(cursor, matched);
      this.#afterBlank = false;
    }
  }

  more(text: string): void {
    if (this.#leaf) this.#grow(this.#leaf, text);
  }

  end(): void {
    const leaf = this.#leaf;
    if (leaf?.kind === "heading") leaf.text = headingText(leaf.text);
    if (leaf?.kind === "heading" || leaf?.kind === "row") this.#closeTo(this.#open.length - 1);
    else if (leaf?.kind === "code") this.#grow(leaf, "\n");
    this.#leaf = null;
  }

  /** The text is over. */
  finish(): void {
    this.#closeTo(0);
  }

  /** How many of the open blocks the line goes on with; null when it was the end of a fence. */
  #match(cursor: Cursor): number | null {
    for (const [index, block] of this.#open.entries()) {
      if (block.kind === "code" && block.fence && closes(cursor, block.fence.mark, block.fence.length)) {
        this.#closeTo(index);
        this.#afterBlank = false;
        return null;
      }
      if (!goesOn(block, cursor)) return index;
    }
    return this.#open.length;
  }

  /** A line of code; blank lines after code by indentation belong to it only if more follows. */
  #code(cursor: Cursor, code: Code): void {
    this.#afterBlank = cursor.blank && code.fence === null;
    if (this.#afterBlank) this.#blanks += `${cursor.remainder}\n`;
    else {
      this.#into(code, this.#blanks + cursor.remainder);
      this.#blanks = "";
    }
  }

  /** Puts a line that is not blank where it belongs. */
  #place(cursor: Cursor, matched: number): void {
    const paragraph = this.#open[matched - 1];
    if (paragraph?.kind === "paragraph" && this.#headed(cursor, paragraph)) return;
    let depth = matched;
    while (this.#container(cursor, depth)) depth = this.#open.length;
    const block = this.#open[depth - 1];
    const indented = cursor.indent >= CODE_INDENT;
    if (!indented && this.#start(cursor, depth, block)) return;
    const leaf = this.#leafFor(cursor, depth, indented);
    if (!leaf) return;
    if (leaf.kind === "code") cursor.space(CODE_INDENT);
    const text = leaf.kind === "code" ? cursor.remainder : cursor.rest;
    this.#into(leaf, leaf.text ? `\n${text}` : text);
  }

  /** What a line without marks of its own goes into; null for an item without text. */
  #leafFor(cursor: Cursor, depth: number, indented: boolean): Leaf | null {
    // A paragraph goes on without the marks of what it stands in.
    const last = this.#open.at(-1);
    if (last?.kind === "paragraph") return last;
    const block = this.#open[depth - 1];
    if (block?.kind === "table" && !indented) {
      return this.#push({ kind: "row", header: false, alignments: block.alignments, text: "" });
    }
    if (cursor.blank) return null;
    this.#closeTo(this.#outside(depth));
    if (indented) return this.#push({ kind: "code", fence: null, language: "", text: "" });
    const parent = this.#open.at(-1);
    return this.#push({ kind: "paragraph", first: parent?.kind === "item" && parent.empty, text: "" });
  }

  /** Opens a quote or an item, if the line begins with one. */
  #container(cursor: Cursor, depth: number): boolean {
    if (cursor.indent >= CODE_INDENT || this.#depth(depth) >= DEEPEST) return false;
    if (quoted(cursor)) {
      this.#closeTo(this.#outside(depth));
      this.#push({ kind: "quote" });
      return true;
    }
    const found = isRule(cursor) ? null : bullet(cursor, this.#open[depth - 1]?.kind === "paragraph");
    if (!found) return false;
    const indent = cursor.indent;
    const list = this.#listFor(depth, found.mark, found.start);
    cursor.space(indent);
    cursor.skip(found.width);
    const gap = cursor.indent;
    const empty = cursor.blank;
    const inner = empty || gap > CODE_INDENT ? 1 : gap;
    cursor.space(inner);
    this.#push({ kind: "item", list, indent: indent + found.width + inner, empty: true });
    return true;
  }

  /** The list that the item goes on with, or a new one. */
  #listFor(depth: number, mark: string, start: number | null): List {
    const outside = this.#open[depth - 1]?.kind === "list" ? depth : this.#outside(depth);
    const open = this.#open[outside - 1];
    if (open?.kind === "list" && open.mark === mark && (open.start === null) === (start === null)) {
      this.#closeTo(outside);
      if (this.#afterBlank) this.#loosen(open);
      return open;
    }
    this.#closeTo(open?.kind === "list" ? outside - 1 : outside);
    const list: List = { kind: "list", start, mark, tight: true };
    this.#push(list);
    return list;
  }

  /** Opens a heading, fence, table or rule, if the line is one. */
  #start(cursor: Cursor, depth: number, block: Block | undefined): boolean {
    const level = headingLevel(cursor.rest);
    if (level > 0) {
      this.#closeTo(this.#outside(depth));
      const heading = this.#push({ kind: "heading", level, text: "" });
      this.#into(heading, cursor.rest.slice(level));
      return true;
    }
    const opening = fence(cursor);
    if (opening) {
      const { language, ...marks } = opening;
      this.#closeTo(this.#outside(depth));
      this.#push({ kind: "code", fence: marks, language, text: "" });
      return true;
    }
    if (block?.kind === "paragraph" && this.#underlined(cursor, block)) return true;
    if (!isRule(cursor)) return false;
    this.#closeTo(this.#outside(depth));
    this.#push({ kind: "rule" });
    this.#closeTo(this.#open.length - 1);
    return true;
  }

  #underlined(cursor: Cursor, paragraph: Paragraph): boolean {
    const level = underlineLevel(cursor);
    if (level === 0 || paragraph.text.length > LONG) return false;
    this.#takeDefinitions(paragraph);
    if (paragraph.text === "") return false;
    this.#drop(paragraph);
    this.#into(this.#push({ kind: "heading", level, text: "" }), paragraph.text);
    this.#closeTo(this.#open.length - 1);
    this.#leaf = null;
    return true;
  }

  /** The paragraph's last line becomes a table's header, if this line says so. */
  #headed(cursor: Cursor, paragraph: Paragraph): boolean {
    const alignments = delimiterRow(cursor);
    if (!alignments || cursor.indent >= CODE_INDENT || paragraph.text.length > LONG) return false;
    const at = paragraph.text.lastIndexOf("\n") + 1;
    const header = paragraph.text.slice(at);
    if (cells(header).length !== alignments.length) return false;
    if (at > 0) {
      paragraph.text = paragraph.text.slice(0, at - 1);
      this.#closeTo(this.#open.length - 1);
    } else this.#drop(paragraph);
    this.#push({ kind: "table", alignments });
    this.#into(this.#push({ kind: "row", header: true, alignments, text: "" }), header);
    this.#closeTo(this.#open.length - 1);
    this.#leaf = null;
    return true;
  }

  /** What a new block at that depth stands in: it ends leaves, tables and lists. */
  #outside(depth: number): number {
    let outside = depth;
    while (outside > 0 && !["quote", "item"].includes(this.#open[outside - 1]?.kind ?? "")) outside -= 1;
    return outside;
  }

  #depth(count: number): number {
    return this.#open.slice(0, count).filter((block) => block.kind === "quote" || block.kind === "item").length;
  }

  #push<B extends Block>(block: B): B {
    const parent = this.#open.at(-1);
    if (parent?.kind === "item") {
      if (!parent.empty && this.#afterBlank) this.#loosen(parent.list);
      parent.empty = false;
    }
    this.#afterBlank = false;
    this.#blanks = "";
    this.#open.push(block);
    this.#sink.open(block);
    return block;
  }

  #loosen(list: List): void {
    if (list.tight) this.#sink.loosen(list);
    list.tight = false;
  }

  #into(leaf: Leaf, text: string): void {
    this.#leaf = leaf;
    this.#grow(leaf, text);
  }

  #grow(leaf: Leaf, added: string): void {
    leaf.text += added;
    this.#sink.grow(leaf, added);
  }

  #closeTo(count: number): void {
    while (this.#open.length > count) {
      const block = this.#open.at(-1) as Block;
      if (block.kind === "paragraph") this.#takeDefinitions(block);
      if (block.kind === "paragraph" && block.text === "") {
        this.#drop(block);
        continue;
      }
      this.#open.pop();
      this.#sink.close(block);
    }
  }

  #drop(leaf: Leaf): void {
    this.#open.pop();
    this.#sink.drop(leaf);
  }

  #takeDefinitions(paragraph: Paragraph): void {
    if (paragraph.text.length <= LONG) paragraph.text = withoutDefinitions(paragraph.text, this.#define);
  }
}
