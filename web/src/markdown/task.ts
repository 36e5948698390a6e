// The box of a task in a list: "[x] done".

const TASK = /^\[([ xX])\][ \t]+(?=\S)/;

/** What may still become one. */
const HALF_TASK = /^\[(?:[ xX]?|[ xX]\][ \t]*)$/;

export class TaskBox {
  readonly #host: HTMLElement;
  #drawn = false;

  constructor(host: HTMLElement) {
    this.#host = host;
  }

  /** Shows the box that the text begins with, if it does; how many characters of the text are not to be shown. */
  read(text: string, whole: boolean): number {
    const found = TASK.exec(text);
    if (!found) return !whole && HALF_TASK.test(text) ? text.length : 0;
    if (!this.#drawn) {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.disabled = true;
      box.defaultChecked = found[1] !== " ";
      box.ariaLabel = found[1] === " " ? "To do" : "Done";
      this.#host.prepend(box);
      this.#host.classList.add("md-task");
      this.#drawn = true;
    }
    return found[0].length;
  }
}
