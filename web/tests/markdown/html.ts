// Elements compared as normalised HTML.

import { marked } from "marked";
import { vi } from "vitest";
import { Reply } from "../../src/markdown/reply";

/** jsdom lays nothing out, so nothing is ever wide. */
vi.stubGlobal(
  "ResizeObserver",
  class {
    observe(): void {}
    disconnect(): void {}
  },
);

/** The reply whose text comes in these pieces, drawn after each that `drawn` says. */
export function shown(pieces: readonly string[], drawn: (index: number) => boolean = () => true): HTMLElement {
  const root = document.createElement("div");
  const reply = new Reply(root);
  for (const [index, piece] of pieces.entries()) {
    reply.push(piece);
    if (drawn(index)) reply.draw();
  }
  reply.finish();
  while (reply.refer());
  return root;
}

/** Without what only this page adds, and in marked's spelling of it. */
export function bare(root: HTMLElement): string {
  const copy = document.createElement("div");
  copy.append(...[...root.cloneNode(true).childNodes]);
  for (const unwanted of copy.querySelectorAll(".md-code-head")) unwanted.remove();
  for (const wrap of copy.querySelectorAll(".md-code, .md-scroll:not(pre), .md-lines"))
    wrap.replaceWith(...wrap.childNodes);
  for (const p of copy.querySelectorAll("ul.md-tight > li > p, ol.md-tight > li > p")) p.replaceWith(...p.childNodes);
  for (const box of copy.querySelectorAll("input")) box.after(" ");
  for (const element of copy.querySelectorAll("*"))
    for (const name of element.getAttributeNames())
      if (!["href", "title", "start", "checked"].includes(name)) element.removeAttribute(name);
  copy.normalize();
  return tidy(copy);
}

/** What marked itself makes of the text. */
export function byMarked(text: string): string {
  const root = document.createElement("div");
  root.innerHTML = marked.parse(text, { async: false, breaks: true });
  for (const heading of root.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const lower = document.createElement(`h${Math.min(6, Number(heading.tagName[1]) + 2)}`);
    lower.append(...heading.childNodes);
    heading.replaceWith(lower);
  }
  for (const element of root.querySelectorAll("*"))
    for (const name of element.getAttributeNames())
      if (!["href", "title", "start", "checked"].includes(name)) element.removeAttribute(name);
  root.normalize();
  return tidy(root);
}

/** White space between blocks means nothing. */
function tidy(root: HTMLElement): string {
  return root.innerHTML
    .replace(/\s*(<\/?(?:ul|ol|li|p|blockquote|pre|table|thead|tbody|tr|td|th|h\d|hr|input)\b[^>]*>)\s*/g, "\n$1\n")
    .replace(/\n+/g, "\n")
    .replace(/\n?<tbody>\n<\/tbody>/g, "")
    .replace(/<br>\s*/g, "<br>")
    .trim();
}
