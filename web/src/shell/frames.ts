// Redrawing at the pace of the screen: many events may fall into one frame.

import { type Signal, signal } from "@preact/signals";

export class Frames {
  /** Counts up once per frame in which something changed; a component that reads it is drawn again. */
  readonly tick: Signal<number> = signal(0);
  #pending = 0;

  /** Something changed. */
  mark(): void {
    this.#pending ||= requestAnimationFrame(() => this.now());
  }

  /** What changed is drawn at once: for what a person's own press causes. */
  now(): void {
    cancelAnimationFrame(this.#pending);
    this.#pending = 0;
    this.tick.value += 1;
  }
}
