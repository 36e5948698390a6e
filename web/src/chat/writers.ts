// Which tab a reply comes to: one that finds a running reply asks the others before it takes it from them.

import { channel } from "./channel";

const PATIENCE_MS = 300; // a tab answers within a few; one that is frozen has no socket that lives either

interface Word {
  id: string;
  here: boolean; // false: it is asked
}

export class Writers {
  readonly #channel = channel<Word>("paceline.replies", (word) => this.#heard(word));
  readonly #waiting = new Set<{ id: string; answer(): void }>();
  readonly #writes: (id: string) => boolean;

  /** writes: whether a reply in the conversation `id` comes to this tab. */
  constructor(writes: (id: string) => boolean) {
    this.#writes = writes;
  }

  /** Whether a reply in the conversation `id` comes to another tab. */
  ask(id: string): Promise<boolean> {
    return new Promise((resolve) => {
      const asked = { id, answer: () => end(true) };
      const end = (elsewhere: boolean) => {
        clearTimeout(patience);
        this.#waiting.delete(asked);
        resolve(elsewhere);
      };
      const patience = setTimeout(() => end(false), PATIENCE_MS);
      this.#waiting.add(asked);
      this.#channel.tell({ id, here: false });
    });
  }

  #heard({ id, here }: Word): void {
    if (!here) {
      if (this.#writes(id)) this.#channel.tell({ id, here: true });
      return;
    }
    for (const asked of this.#waiting) if (asked.id === id) asked.answer();
  }
}
