// Which step is looked at: the newest one, as they come, or one that was chosen and is held.

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Step } from "../wire/events";
import type { Trace } from "./trace";

export interface ShownStep {
  /** Steps of the reply before it. */
  index: number;
  step: Step;
}

export class Cursor {
  readonly #trace: Trace;
  readonly #held: Signal<ShownStep | null> = signal(null);

  constructor(trace: Trace) {
    this.#trace = trace;
  }

  /** The step that is held, which the trace may have dropped since; null: the newest is followed. */
  get held(): ReadonlySignal<ShownStep | null> {
    return this.#held;
  }

  /** What to show; null before the first step. */
  get shown(): ShownStep | null {
    return this.#held.value ?? this.#newest;
  }

  /** Holds a step; one that is not kept any more holds the nearest that is. */
  hold(index: number): void {
    const { steps, dropped } = this.#trace;
    const nearest = Math.min(Math.max(index, dropped), dropped + steps.length - 1);
    const step = this.#trace.step(nearest);
    if (step) this.#held.value = { index: nearest, step };
  }

  /** Holds the step that is shown now. */
  pause(): void {
    this.#held.value = this.shown;
  }

  follow(): void {
    this.#held.value = null;
  }

  /** by: steps forwards, or backwards where negative. */
  move(by: number): void {
    const shown = this.shown;
    if (shown) this.hold(shown.index + by);
  }

  /** Holds the step that brought the most tokens: the first of these, and one with a tree where there is any. */
  best(): void {
    const { steps, dropped } = this.#trace;
    const worth = (step: Step) => 2 * step.emitted + (step.tree ? 1 : 0);
    const most = steps.reduce((most, step) => Math.max(most, worth(step)), 0);
    this.hold(dropped + steps.findIndex((step) => worth(step) === most));
  }

  /** Holds the oldest step that is kept. */
  oldest(): void {
    this.hold(0);
  }

  get #newest(): ShownStep | null {
    const { steps, dropped } = this.#trace;
    const step = steps[steps.length - 1];
    return step ? { index: dropped + steps.length - 1, step } : null;
  }
}
