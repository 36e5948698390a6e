// Redrawing in every other frame of the screen: many events may fall into one, text that grows faster cannot be read, and
// the model may be computed by the same processor.

import { type Signal, signal } from "@preact/signals";

/** Milliseconds between two drawings, a little less than two frames of a usual screen. */
export const PACE_MS = 30;

export class Frames {
  /** Counts up with each drawing before which something changed; a component that reads it is drawn again. */
  readonly tick: Signal<number> = signal(0);
  #pending = 0;
  #last = Number.NEGATIVE_INFINITY; // when it was drawn
  #resting = false;
  #missed = false; // something changed during the rest

  /** Nobody can see it: what changes is drawn when the rest is over, all of it at once. */
  rest(on: boolean): void {
    this.#resting = on;
    if (!on && this.#missed) this.now();
  }

  /** Something changed. */
  mark(): void {
    this.#pending ||= requestAnimationFrame((time) => this.#frame(time));
  }

  #frame(time: number): void {
    this.#pending = 0;
    if (time < this.#last + PACE_MS) this.mark();
    else this.now();
  }

  /** What changed is drawn at once: for what a person's own press causes. */
  now(): void {
    cancelAnimationFrame(this.#pending);
    this.#pending = 0;
    this.#missed = this.#resting;
    if (this.#resting) return;
    this.#last = performance.now();
    this.tick.value += 1;
  }
}
