// A lane's text on the page. What has not come yet stands there unseen, so that nothing moves while it is played again.
// Text that one step brought as several tokens is underlined, in turns, so that each such run can be seen.

import type { Mark } from "./lane";

const COMING = "race-coming";

export class Inscription {
  readonly #root: HTMLElement;
  #marks: readonly Mark[] | null = null;
  #parts: HTMLElement[] = [];
  #shown = 0;
  #runs = 0;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** marks: of one lane, which may have grown since. shown: how many of them have arrived. */
  draw(marks: readonly Mark[], shown: number): void {
    if (marks !== this.#marks) {
      this.#root.textContent = "";
      this.#marks = marks;
      this.#parts = [];
      this.#shown = this.#runs = 0;
    }
    for (const mark of marks.slice(this.#parts.length)) this.#add(mark);
    for (const part of this.#parts.slice(this.#shown, shown)) part.classList.remove(COMING);
    for (const part of this.#parts.slice(shown, this.#shown)) part.classList.add(COMING);
    this.#shown = shown;
  }

  #add({ text, tokens }: Mark): void {
    const part = document.createElement("span");
    part.textContent = text;
    part.className = COMING;
    if (tokens > 1) {
      this.#runs += 1;
      part.classList.add("race-run");
      part.classList.toggle("race-odd", this.#runs % 2 === 1);
    }
    this.#parts.push(part);
    this.#root.append(part);
  }
}
