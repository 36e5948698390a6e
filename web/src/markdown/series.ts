// What stands one behind the other within an element of the page, drawn again only where the text has changed.

/** How the text of a block ends: behind it something else follows, or a blank line; or it is still coming, and may be drawn later. */
export type Ending = "done" | "blank" | "open" | "later";

/** One part of a reply on the page. */
export interface View<T> {
  readonly element: ChildNode;
  /** Shows the token, which stands where the one before stood; false if it is of another kind. */
  update(token: T, ending: Ending): boolean;
  /** Lets go of what is drawn for good: of the text, only what is in `kept` comes again. */
  shed?(kept: T): void;
}

interface Drawn<T> {
  view: View<T>;
  /** What it shows; null when it has to be drawn in any case. */
  raw: string | null;
  ending: Ending;
}

export class Series<T extends { raw: string; type: string }> {
  readonly #host: Element;
  readonly #make: (token: T) => View<T>;
  /** The last of the host's children; those before are drawn for good. */
  readonly #drawn: Drawn<T>[] = [];

  constructor(host: Element, make: (token: T) => View<T>) {
    this.#host = host;
    this.#make = make;
  }

  /** Shows the tokens; the last one ends so. */
  draw(tokens: readonly T[], last: Ending): void {
    for (const [index, token] of tokens.entries()) {
      // The line behind a definition may be its title.
      const near = tokens.length - index <= (token.type === "def" ? 2 : 1);
      this.#place(index, token, near ? last : "done");
    }
    for (const { view } of this.#drawn.splice(tokens.length)) view.element.remove();
  }

  /** Lets go of all but the last of its parts, and of what is drawn for good in that one. */
  shed(kept: readonly T[]): void {
    this.#drawn.splice(0, this.#drawn.length - kept.length);
    for (const [index, drawn] of this.#drawn.entries()) {
      drawn.view.shed?.(kept[index] as T);
      drawn.raw = null;
    }
  }

  #place(index: number, token: T, ending: Ending): void {
    const old = this.#drawn[index];
    const raw = token.raw.trimEnd();
    if (old?.raw === raw && old.ending === ending) return;
    if (old?.view.update(token, ending)) {
      Object.assign(old, { raw, ending });
      return;
    }
    const view = this.#make(token);
    if (old) old.view.element.replaceWith(view.element);
    else this.#host.append(view.element);
    view.update(token, ending);
    this.#drawn[index] = { view, raw, ending };
  }
}
