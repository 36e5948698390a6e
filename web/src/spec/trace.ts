// What is known of one reply's verify steps, bounded: the newest steps whole, the older ones in the sums alone.

import type { Spec, Step, Usage } from "../wire/events";
import { Figures } from "./figures";

const KEPT_STEPS = 512;

export class Trace {
  /** The newest steps, oldest first. */
  readonly steps: Step[] = [];
  /** Steps that came before `steps[0]`. */
  dropped = 0;
  readonly figures: Figures;

  /** sentAt: when response.create was sent, as performance.now(). */
  constructor(sentAt: number) {
    this.figures = new Figures(sentAt);
  }

  /** One text event. */
  push(_text: string, spec: Spec | undefined, now: number): void {
    this.figures.delta(now, spec);
    for (const step of spec?.steps ?? []) this.steps.push(step);
    const over = this.steps.length - KEPT_STEPS;
    if (over > 0) {
      this.steps.splice(0, over);
      this.dropped += over;
    }
  }

  /** The reply has ended. */
  finish(usage: Usage | null | undefined): void {
    this.figures.finish(usage);
  }
}
