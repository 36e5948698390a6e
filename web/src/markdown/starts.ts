// What the start of a line opens, by the rules of CommonMark and of GFM's tables.

import type { Alignment } from "./block";
import type { Cursor } from "./cursor";

/** White space from here on is code, or belongs to the paragraph. */
export const CODE_INDENT = 4;

/** A table with more columns is text: rows are filled up to the width of the header. */
const MOST_COLUMNS = 64;

export interface Fence {
  mark: string;
  length: number;
  indent: number;
  language: string;
}

/** The opening of a fenced code block. */
export function fence(cursor: Cursor): Fence | null {
  if (!cursor.whole) return null;
  const found = /^(`{3,}(?=[^`]*$)|~{3,})(.*)$/.exec(cursor.rest);
  if (!found?.[1]) return null;
  const language = /^\S*/.exec((found[2] ?? "").trim())?.[0] ?? "";
  return { mark: found[1].charAt(0), length: found[1].length, indent: cursor.indent, language };
}

/** Whether the line closes such a block. */
export function closes(cursor: Cursor, mark: string, length: number): boolean {
  if (!cursor.whole || cursor.indent >= CODE_INDENT) return false;
  const rest = cursor.rest.trimEnd();
  return rest.length >= length && rest === mark.repeat(rest.length);
}

/** 1 to 6, or 0 for no heading. */
export function headingLevel(rest: string): number {
  return /^(#{1,6})(?:[ \t]|$)/.exec(rest)?.[1]?.length ?? 0;
}

/** A heading's text without the marks that may close it. */
export function headingText(line: string): string {
  const text = line.trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || " \t".includes(text[end - 1] ?? "#") ? text.slice(0, end).trimEnd() : text;
}

/** 1 or 2 where the line underlines a heading, else 0. */
export function underlineLevel(cursor: Cursor): number {
  const mark = cursor.whole && /^(?:=+|-+)[ \t]*$/.exec(cursor.rest)?.[0].charAt(0);
  return mark === "=" ? 1 : mark === "-" ? 2 : 0;
}

/** A line across the page. */
export function isRule(cursor: Cursor): boolean {
  return cursor.whole && /^(?:(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})$/.test(cursor.rest);
}

export interface Bullet {
  mark: string;
  /** The number; null for a bullet. */
  start: number | null;
  /** Characters of the bullet or number. */
  width: number;
}

/** A list item's bullet or number. */
export function bullet(cursor: Cursor, inParagraph: boolean): Bullet | null {
  const found = /^(?:([-+*])|(\d{1,9})([.)]))(?=[ \t]|$)(.*)$/.exec(cursor.rest);
  if (!found) return null;
  const start = found[2] === undefined ? null : Number(found[2]);
  // A number at a line's start, or a dash alone, is mostly part of the sentence.
  if (inParagraph && ((start ?? 1) !== 1 || (cursor.whole && !found[4]?.trim()))) return null;
  return { mark: found[1] ?? found[3] ?? "", start, width: found[1] ? 1 : (found[2] ?? "").length + 1 };
}

/** The columns of the table whose header is the line before; null where the line is no delimiter row. */
export function delimiterRow(cursor: Cursor): Alignment[] | null {
  const rest = cursor.rest.trimEnd();
  if (!cursor.whole || !/[|:]/.test(rest) || !/^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/.test(rest))
    return null;
  const columns = rest.replace(/^\||\|$/g, "").split("|");
  if (columns.length > MOST_COLUMNS) return null;
  return columns.map((column) => {
    const text = column.trim();
    if (text.startsWith(":")) return text.endsWith(":") && text.length > 1 ? "center" : "left";
    return text.endsWith(":") ? "right" : "";
  });
}

/** The texts between a table row's bars; an escaped bar is text. */
export function cells(row: string): string[] {
  const inner = row.trim().replace(/^\|/, "");
  const parts = inner.match(/(?:\\[\s\S]|[^|\\])+|\\$|\|/g) ?? [];
  const found = [""];
  for (const part of parts) {
    if (part === "|") found.push("");
    else found[found.length - 1] += part;
  }
  if (found.length > 1 && found.at(-1)?.trim() === "") found.pop();
  return found.map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

/** How many characters at the start of the text define a link; 0 for none. */
export type Define = (text: string) => number;

/** What is left of a paragraph behind the links it defines. */
export function withoutDefinitions(text: string, define: Define): string {
  let left = text;
  for (let taken = 1; taken > 0 && left.startsWith("["); ) {
    taken = define(left);
    left = left.slice(taken).replace(/^\n/, "");
  }
  return left;
}
