// A block of code: its language, a button that copies it, and the code, which grows by whole pieces of lines.

import { copy } from "../shell/browser";

/** Milliseconds for which it is told how copying went. */
const TOLD_MS = 4000;

/** Longer code is not coloured: it would take too long at once. */
const LONGEST_COLOURED = 20_000;

/** Lines are laid out again only within the last piece of about so many characters. */
const PIECE = 2000;

export class CodeView {
  readonly element = document.createElement("div");
  readonly language: string;
  readonly scroller = document.createElement("pre");
  readonly #code = document.createElement("code");
  #last: Text | null = null;
  #size = 0;

  constructor(language: string) {
    this.language = language;
    this.element.className = "md-code";
    const head = document.createElement("div");
    head.className = "md-code-head";
    const name = document.createElement("span");
    name.textContent = language || "text";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "md-copy";
    button.textContent = "Copy";
    button.ariaLabel = "Copy code";
    const status = document.createElement("span");
    status.className = "md-copied";
    status.role = "status";
    head.append(name, status, button);
    this.scroller.className = "md-scroll";
    this.scroller.dir = "ltr";
    this.scroller.role = "group";
    this.scroller.ariaLabel = `Code: ${language || "text"}`;
    this.scroller.append(this.#code);
    this.element.append(head, this.scroller);
  }

  /** More code. */
  grow(text: string): void {
    for (const line of text.split(/(?<=\n)/)) {
      if (!this.#last) {
        this.#last = document.createTextNode("");
        const piece = document.createElement("span");
        piece.className = "md-lines";
        piece.append(this.#last);
        this.#code.append(piece);
      }
      this.#last.appendData(line);
      this.#size += line.length;
      if (this.#size < PIECE || !line.endsWith("\n")) continue;
      this.#last = null;
      this.#size = 0;
    }
  }

  /** Nothing of the code is shown any more. */
  clear(): void {
    this.#code.replaceChildren();
    this.#last = null;
    this.#size = 0;
  }

  /** Shows the code in colours, which are fetched first. */
  paint(): void {
    const text = this.#code.textContent;
    if (!this.language || text.length > LONGEST_COLOURED) return;
    void import("./highlight").then(
      ({ highlight }) => {
        const coloured = highlight(text, this.language);
        if (coloured && this.#code.textContent === text) this.#code.replaceChildren(coloured);
      },
      () => undefined, // the server may be away: the code stays as it is
    );
  }
}

/** Answers the copy buttons within `root`. */
export function answerCopying(root: HTMLElement): void {
  const timers = new WeakMap<Element, ReturnType<typeof setTimeout>>();
  const tell = (status: Element, told: string) => {
    clearTimeout(timers.get(status)); // of a press before this one
    status.textContent = told;
    timers.set(
      status,
      setTimeout(() => {
        status.textContent = "";
      }, TOLD_MS),
    );
  };
  root.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest(".md-copy") : null;
    const block = button?.closest(".md-code");
    const code = block?.querySelector("code");
    const status = block?.querySelector(".md-copied");
    if (code && status) void copied(code).then((told) => tell(status, told));
  });
}

/** Says how it went: where the browser lets no page copy, the code is selected for the person to do it. */
async function copied(code: HTMLElement): Promise<string> {
  if (await copy(code.textContent.replace(/\n$/, ""))) return "Copied";
  getSelection()?.selectAllChildren(code);
  return "Selected: press Ctrl+C or ⌘C";
}
