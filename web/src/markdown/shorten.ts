// What has to be kept of the text of a reply that goes on: its last block, and within it what may still change. The marks
// around that stay, so that what follows reads as it would have.

import type { Token, Tokens } from "marked";
import { DRAWN } from "./blocks";

/** Text is read in stretches of at most so many characters. */
export const LONG = 2000;

/** The blocks among the tokens of a text. */
export function blocksOf(tokens: readonly Token[]): Token[] {
  return tokens.filter(({ type }) => type !== "space");
}

/** The text in stretches that are read on their own, cut where lines or words end. */
export function stretches(text: string): string[] {
  const found: string[] = [];
  let from = 0;
  while (text.length - from > LONG) {
    const window = text.slice(from, from + LONG);
    const end =
      window.lastIndexOf("\n") + 1 || window.lastIndexOf(" ") + 1 || LONG - Number(/[\uD800-\uDBFF]$/.test(window));
    found.push(window.slice(0, end));
    from += end;
  }
  return [...found, text.slice(from)];
}

/** The text of a token without what stands for the part that is drawn for good, and without white space at the end. */
export function undrawn(text: string): string {
  return (text.startsWith(DRAWN) ? text.replace(/^.\n?/, "") : text).trimEnd();
}

/** What opens a fence; null where the code is not fenced, or the fence is closed. */
export function openFence(raw: string): string | null {
  const mark = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  const closed = mark && new RegExp(`\n {0,3}${mark}${mark.charAt(0)}* *$`).test(raw.trimEnd());
  return mark && !closed ? mark : null;
}

/** What has to be kept of a text with these tokens. */
export function shorten(tokens: readonly Token[], text: string, within = true): string {
  const last = blocksOf(tokens).at(-1);
  const raw = last?.raw.trimEnd();
  const at = raw ? text.lastIndexOf(raw) : -1;
  if (!last || !raw || text.slice(at + raw.length).trim() !== "") return text;
  return (within ? shortBlock(last, raw) : raw) + text.slice(at + raw.length);
}

/** Whether what is kept still reads as the end of what it was, and as nothing else. */
export function agree(before: readonly Token[], after: readonly Token[]): boolean {
  const [was, is] = [blocksOf(before), blocksOf(after)];
  const [last, kept] = [was.at(-1), is.at(-1)];
  if (!last || !kept || (is.length !== 1 && is.length !== was.length)) return false;
  if (last.type === "list" && kept.type === "list") {
    const [item, rest] = [last.items.at(-1), kept.items[0]];
    return kept.items.length === 1 && last.ordered === kept.ordered && agree(item.tokens, rest.tokens);
  }
  if (last.type === "blockquote" && kept.type === "blockquote") return agree(last.tokens ?? [], kept.tokens ?? []);
  return kind(last) === kind(kept) && lastLine(last.raw).endsWith(lastLine(kept.raw).split(DRAWN).at(-1) ?? "");
}

/** Paragraphs of items are texts in a tight list. */
function kind({ type }: Token): string {
  return type === "text" ? "paragraph" : type;
}

function lastLine(raw: string): string {
  return raw.trimEnd().split("\n").at(-1) ?? "";
}

function shortBlock(token: Token, raw: string): string {
  const lines = raw.split("\n");
  const end = lines.at(-1) ?? "";
  let text: string | null = null;
  switch (token.type) {
    case "list":
      return shortItem(token.items.at(-1));
    case "blockquote":
      return shortQuote(token as Tokens.Blockquote, raw);
    case "table":
      return lines.length > 3 ? [lines[0], lines[1], end].join("\n") : raw;
    case "code":
      if (token.codeBlockStyle === "indented") return end;
      return lines.length > 2 && openFence(raw) ? `${lines[0]}\n${end}` : raw;
    case "heading":
      text = raw.startsWith("#") ? shortText(token.text) : null;
      return text === null ? raw : `${"#".repeat(token.depth)} ${text}`;
    case "paragraph":
    case "text":
      return shortText(token.text) ?? raw;
    default:
      return raw;
  }
}

/** The last stretch of a text; null if it is the only one. */
function shortText(text: string): string | null {
  const parts = stretches(undrawn(text));
  if (parts.length === 1) return null;
  return `${DRAWN}${parts.at(-2)?.endsWith("\n") ? "\n" : ""}${parts.at(-1)}`;
}

function shortQuote({ tokens }: Tokens.Blockquote, raw: string): string {
  const text = raw.replace(/^ {0,3}> ?/gm, "");
  const inner = shorten(tokens, text);
  return inner === text ? raw : inner.replace(/^/gm, "> ");
}

function shortItem({ raw, text, tokens }: Tokens.ListItem): string {
  const inner = shorten(tokens, text);
  // What would read as a task stays behind what it stands behind.
  if (inner === text || /^\[[ xX]\]/.test(inner)) return raw.trimEnd();
  const [, bullet = "", space = ""] = /^( {0,3}(?:[-+*]|\d{1,9}[.)]))([ \t]*)/.exec(raw) ?? [];
  const first = raw.charAt(bullet.length + space.length);
  const width = first === "" || first === "\n" ? 1 : columns(space, bullet.length);
  const indent = " ".repeat(bullet.length + width);
  const lines = inner.replace(/^(?=[^\n])/gm, indent);
  // Spaces behind a bullet would say where the item's text stands: text that begins with some goes below.
  if (/^[ \t]/.test(inner)) return width === 1 ? `${bullet}\n${lines}` : raw.trimEnd();
  return bullet + lines.slice(bullet.length);
}

/** Columns between a bullet and the text: from the fifth on they belong to the text, as code. */
function columns(space: string, start: number): number {
  let width = 0;
  for (const char of space) width += char === "\t" ? 4 - ((start + width) % 4) : 1;
  return width > 4 ? 1 : width;
}
