// The tokens of a reply as elements: added as they come and taken away as the trace drops them, without a look at those
// in between. They stand in blocks that end where a line ends anyway, so that the browser sets the newest lines alone
// anew and not the whole text. One of the tokens is the tab stop; the keys move it.

import { originOf } from "./origins";
import type { TracedToken } from "./provenance";
import type { Trace } from "./trace";
import { visible } from "./words";

const LEAST_IN_BLOCK = 16;
const LONGEST = 2000; // characters of a token that are drawn; where tokens are not told apart a whole delta is one

export class TokenList {
  readonly #root: HTMLElement;
  #spans: HTMLElement[] = [];
  /** Tokens of the reply before the first span, and before the tab stop. */
  #first = 0;
  #stop = 0;
  #marked: HTMLElement[] = [];

  /** root: an empty listbox. */
  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** The same tokens as the trace; those of step `marked` stand out. */
  update(trace: Trace, marked: number | null): void {
    const gone = this.#spans.splice(0, trace.droppedTokens - this.#first);
    const focused = gone.some((span) => span === document.activeElement);
    for (const span of gone) {
      const block = span.parentElement;
      span.remove();
      if (!block?.firstChild) block?.remove();
    }
    this.#first = trace.droppedTokens;
    const fresh = trace.tokens.slice(this.#spans.length).map(element);
    this.#spans.push(...fresh);
    for (const span of fresh) this.#append(span);
    if (this.#stop < this.#first || fresh.length === this.#spans.length)
      this.#stopAt(Math.max(this.#stop, this.#first));
    if (focused) this.#spans[0]?.focus({ preventScroll: true });
    this.#mark(trace, marked);
  }

  /** The token an element is, as an index of the reply; null for any other. */
  indexOf(target: EventTarget | null): number | null {
    const place = target instanceof HTMLElement ? this.#spans.indexOf(target) : -1;
    return place < 0 ? null : this.#first + place;
  }

  element(index: number): HTMLElement | undefined {
    return this.#spans[index - this.#first];
  }

  /** Moves the tab stop and the focus; false where the key means nothing here. */
  key(key: string): boolean {
    const last = this.#first + this.#spans.length - 1;
    const to: Record<string, () => number> = {
      ArrowRight: () => this.#stop + 1,
      ArrowLeft: () => this.#stop - 1,
      Home: () => this.#first,
      End: () => last,
      ArrowDown: () => this.#inLine(1),
      ArrowUp: () => this.#inLine(-1),
    };
    const wanted = Object.hasOwn(to, key) ? to[key] : undefined;
    if (!wanted) return false;
    this.focus(Math.min(Math.max(wanted(), this.#first), last));
    return true;
  }

  focus(index: number): void {
    this.#stopAt(index);
    this.element(index)?.focus();
  }

  #append(span: HTMLElement): void {
    const last = this.#root.lastElementChild;
    const full = last && last.childElementCount >= LEAST_IN_BLOCK && last.lastElementChild?.textContent?.endsWith("\n");
    if (last && !full) last.append(span);
    else this.#root.appendChild(document.createElement("div")).append(span);
  }

  #stopAt(index: number): void {
    this.element(this.#stop)?.setAttribute("tabindex", "-1");
    this.#stop = index;
    this.element(index)?.setAttribute("tabindex", "0");
  }

  /** The token nearest to the tab stop in the line above (-1) or below (1). */
  #inLine(direction: 1 | -1): number {
    const from = this.element(this.#stop)?.getClientRects()[0];
    if (!from) return this.#stop;
    let best = this.#stop;
    let distance = Number.POSITIVE_INFINITY;
    let line: number | undefined;
    for (let index = this.#stop + direction; ; index += direction) {
      const rect = this.element(index)?.getClientRects()[0];
      if (!rect) return best;
      if ((rect.top - from.top) * direction < from.height / 2) continue; // still in the same line
      line ??= rect.top;
      if (Math.abs(rect.top - line) > from.height / 2) return best;
      if (Math.abs(rect.left - from.left) < distance) {
        distance = Math.abs(rect.left - from.left);
        best = index;
      }
    }
  }

  #mark(trace: Trace, step: number | null): void {
    const marked: HTMLElement[] = [];
    for (let place = this.#spans.length - 1; step !== null && place >= 0; place -= 1) {
      const at = trace.tokens[place]?.step ?? null;
      if (at === step) marked.push(this.#spans[place] as HTMLElement);
      if (at !== null && at < step) break;
    }
    for (const span of this.#marked) if (!marked.includes(span)) span.setAttribute("aria-selected", "false");
    for (const span of marked) if (!this.#marked.includes(span)) span.setAttribute("aria-selected", "true");
    this.#marked = marked;
  }
}

function element({ text: told, source }: TracedToken): HTMLElement {
  const text = told.length > LONGEST ? `${told.slice(0, LONGEST - 1)}…` : told;
  const { key, joint, label } = originOf(source);
  const span = document.createElement("span");
  span.className = `spec-token spec-${key}${joint ? " spec-joint" : ""}${/^\s*\n/.test(text) ? " spec-break" : ""}`;
  span.setAttribute("role", "option");
  span.setAttribute("aria-selected", "false");
  span.setAttribute("aria-label", `${text.trim() || visible(text)}, ${label}`);
  span.tabIndex = -1;
  span.textContent = text;
  return span;
}
