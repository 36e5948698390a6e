// What stands within a line of Markdown: marked reads it, DOMPurify lets through what it may be.

import DOMPurify, { type Config } from "dompurify";
import { getDefaults, Lexer, type Links, Parser, Renderer, type Tokens } from "marked";
import { BoundedTokenizer } from "./bounded";

/** Emphasis and link texts within each other; what would go deeper is text. */
const DEEPEST = 16;

/** Where a link may lead. */
const LINKABLE = /^(?:https?:\/\/|mailto:)/i;

/** Longest address that is spelled out beside a text. */
const SHOWN_ADDRESS = 80;

const PURE: Config & { RETURN_DOM_FRAGMENT: true } = {
  ALLOWED_TAGS: ["a", "em", "strong", "del", "code", "br"],
  ALLOWED_ATTR: ["href", "title"],
  ALLOWED_URI_REGEXP: LINKABLE,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** Characters without which a text means itself. */
const MARKS = /[\\`*_[<&~\n@]|:\/\/|www\./i;

/** Raw HTML is text. */
class PlainTokenizer extends BoundedTokenizer {
  override tag(_: string): undefined {}

  override emStrong(src: string, masked: string, before?: string) {
    return this.within(() => super.emStrong(src, masked, before));
  }

  override del(src: string, masked: string, before?: string) {
    return this.within(() => super.del(src, masked, before));
  }

  override link(src: string) {
    return this.within(() => super.link(src));
  }

  override reflink(src: string, links: Links) {
    return this.within(() => super.reflink(src, links));
  }
}

/** Links that lead out of the page, and pictures as such links: nothing is loaded from elsewhere. */
class PlainRenderer extends Renderer<string, string> {
  override link(token: Tokens.Link): string {
    if (LINKABLE.test(token.href)) return super.link(token);
    const text = this.parser.parseInline(token.tokens);
    return token.href === "" || token.autolink ? text : text + this.text(literal(` (${shown(token.href)})`));
  }

  override image(token: Tokens.Image): string {
    const alternative = this.parser.parseInline(token.tokens, this.parser.textRenderer);
    const text = literal(`${alternative} (${shown(token.href)})`.trimStart());
    return LINKABLE.test(token.href) ? super.link({ ...token, type: "link", tokens: [text] }) : this.text(text);
  }
}

function literal(text: string): Tokens.Escape {
  return { type: "escape", raw: text, text };
}

function shown(address: string): string {
  return address.length > SHOWN_ADDRESS ? `${address.slice(0, SHOWN_ADDRESS)}…` : address;
}

/** Reads the texts of one reply, which share the links it defines. */
export class Inline {
  readonly #lexer: Lexer<string, string>;
  readonly #parser: Parser<string, string>;
  /** Counts up with every link that is defined. */
  definitions = 0;

  constructor() {
    const options = {
      ...getDefaults<string, string>(),
      breaks: true,
      tokenizer: new PlainTokenizer(DEEPEST),
      renderer: new PlainRenderer(),
    };
    this.#lexer = new Lexer(options);
    this.#parser = new Parser(options);
  }

  /** A link that texts may refer to; the first of its name counts. */
  define({ tag, href, title }: Tokens.Def): void {
    const { links } = this.#lexer.tokens;
    if (tag in links) return;
    links[tag] = { href, title };
    this.definitions += 1;
  }

  /** The text as nodes: text, emphasis, code and links. */
  read(text: string): DocumentFragment {
    if (!MARKS.test(text)) return plain(text);
    const html = this.#parser.parseInline(this.#lexer.inlineTokens(text));
    const fragment = DOMPurify.sanitize(html, PURE);
    for (const link of fragment.querySelectorAll("a")) {
      link.target = "_blank";
      link.rel = "noopener noreferrer nofollow";
    }
    return fragment;
  }
}

/** The text as it is written. */
export function plain(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  if (text) fragment.append(text);
  return fragment;
}
