// marked finds the blocks of a text; what stands within them is read when it is drawn.

import { getDefaults, Lexer, type Token, type Tokens } from "marked";
import { BoundedTokenizer } from "./bounded";

/** Quotes and lists within each other; what would go deeper is text. */
const DEEPEST = 24;

/** A table with more columns is text: rows are filled up to the width of the header. */
const MOST_COLUMNS = 64;

/** Stands for the beginning of a text that is drawn for good: a character that no reply has, and of those that take one byte. */
export const DRAWN = "\0";

/** The mark of a task before its text. */
const BOX = "[x] ".length;

class BlockTokenizer extends BoundedTokenizer {
  /** By their texts: marked reads quotes in quotes twice at each depth where lines lack marks, without this 2^24 times. */
  readonly quotes = new Map<string, Tokens.Blockquote>();

  /** Raw HTML is text. */
  override html(_: string): undefined {}

  override blockquote(src: string) {
    const found = this.quotes.get(src) ?? this.within(() => super.blockquote(src));
    if (found) this.quotes.set(src, found);
    return found && { ...found };
  }

  /** The items' texts are without the marks of tasks, which `task` and `checked` tell. */
  override list(src: string) {
    const found = this.within(() => super.list(src));
    for (const { task, tokens } of found?.items ?? []) {
      const first = tokens[0];
      if (task && first?.type === "checkbox") tokens.shift();
      else if (task && first && "text" in first) {
        first.raw = first.raw.slice(BOX);
        first.text = first.text.slice(BOX);
      }
    }
    return found;
  }

  /** A title has one line: else the blocks after a definition could become part of it later. */
  override def(src: string) {
    const found = super.def(src);
    if (!found?.title?.includes("\n")) return found;
    const title = found.raw.indexOf(found.title.slice(0, found.title.indexOf("\n")));
    return super.def(src.slice(0, src.indexOf("\n", title)));
  }

  override table(src: string) {
    const found = src.startsWith(DRAWN) ? undefined : super.table(src);
    return found && found.header.length <= MOST_COLUMNS ? found : undefined;
  }

  override lheading(src: string) {
    return src.startsWith(DRAWN) ? undefined : super.lheading(src);
  }
}

export class Blocks {
  readonly #tokenizer = new BlockTokenizer(DEEPEST);
  readonly #lexer = new Lexer<string, string>({ ...getDefaults<string, string>(), tokenizer: this.#tokenizer });

  lex(text: string): Token[] {
    this.#tokenizer.quotes.clear();
    this.#lexer.inlineQueue = [];
    return this.#lexer.blockTokens(text, []);
  }
}
