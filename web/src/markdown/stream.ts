// A reply's Markdown on the page while it still grows.

/** Shows a growing text inside `root`. */
export class MarkdownStream {
  readonly #root: HTMLElement;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** More of the text. */
  push(text: string): void {
    this.#root.append(text);
  }

  /** The text is complete. */
  finish(): void {
    this.#root.normalize();
  }
}
