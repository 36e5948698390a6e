// A reply's Markdown on the page while it still grows, at the pace of the screen.

import "./markdown.css";
import { PACE_MS } from "../shell/frames";
import { answerCopying } from "./code";
import { Reply } from "./reply";

/** What a text has until all of it is drawn. */
export const DRAWING = "data-drawing";

/** Milliseconds of reading in one frame, to begin with. */
const BUDGET = 8;

/** Characters that are read before the clock is looked at. */
const SLICE = 512;

/** Drawing takes at most one part in so many of the time. */
const SHARE = 6;

/** Milliseconds after which it goes on in any case: if the page is hidden and has no frames, or was held up while it drew. */
const PATIENCE = 250;

/** Shows a growing text inside `root`, which is its own. */
export class MarkdownStream {
  readonly #root: HTMLElement;
  readonly #reply: Reply;
  /** Text that is still to be read, from `#at` on. */
  #text = "";
  #at = 0;
  #phase: "open" | "ending" | "referring" | "done" = "open";
  #cancel: (() => void) | null = null;
  #notBefore = 0;
  /** Milliseconds of reading in one frame. */
  #budget = BUDGET;

  constructor(root: HTMLElement) {
    this.#root = root;
    root.classList.add("md");
    root.setAttribute(DRAWING, "");
    answerCopying(root);
    this.#reply = new Reply(root);
  }

  /** More of the text. Cheap: it is drawn with one of the next frames. */
  push(text: string): void {
    this.#text = this.#text.slice(this.#at) + text;
    this.#at = 0;
    this.#schedule();
  }

  /** The text is complete: what is not drawn yet is, with the next frames. */
  finish(): void {
    if (this.#phase === "open") this.#phase = "ending";
    this.#schedule();
  }

  /** Nobody looks at it any more: no more is drawn, and its elements are let go of. */
  end(): void {
    this.#cancel?.();
    this.#phase = "done";
    this.#reply.end();
  }

  #schedule(): void {
    if (this.#cancel) return;
    const run = () => {
      this.#cancel?.();
      this.#run();
    };
    const frame = requestAnimationFrame(run);
    const timer = setTimeout(run, PATIENCE);
    this.#cancel = () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      this.#cancel = null;
    };
  }

  #run(): void {
    const start = performance.now();
    if (start >= this.#notBefore) {
      while (this.#work() && performance.now() < start + this.#budget);
      this.#draw();
    }
    if (this.#at < this.#text.length || this.#phase === "ending" || this.#phase === "referring") this.#schedule();
  }

  /** Draws the open end; the longer that takes, the later it is done again. */
  #draw(): void {
    const read = performance.now();
    if (this.#at >= this.#text.length) this.#reply.draw();
    void this.#root.offsetHeight; // what has to be laid out is part of the cost
    const end = performance.now();
    // With more to read, as long is spent on reading as on laying out; else drawing keeps to its share.
    if (this.#at < this.#text.length) this.#budget = Math.min(2 * BUDGET, Math.max(BUDGET / 2, end - read));
    else this.#notBefore = Math.max(read + PACE_MS, end + Math.min(PATIENCE, (end - read) * SHARE));
  }

  /** A little of what is to do; false when there is nothing. */
  #work(): boolean {
    if (this.#at < this.#text.length) {
      this.#reply.push(this.#text.slice(this.#at, this.#at + SLICE));
      this.#at += SLICE;
      return true;
    }
    if (this.#phase === "ending") {
      this.#reply.finish();
      this.#phase = "referring";
      return true;
    }
    if (this.#phase === "referring" && !this.#reply.refer()) {
      this.#phase = "done";
      this.#root.removeAttribute(DRAWING);
    }
    return this.#phase === "referring";
  }
}
