// One reply of a race as it was received: its text, and when each part of it came.

import { Figures } from "../spec/figures";
import type { Spec, Step, Usage } from "../wire/events";

/** One text event. */
export interface Mark {
  /** Milliseconds since the request left. */
  at: number;
  text: string;
  /** Tokens it brought; more than one where guesses were right. */
  tokens: number;
}

export interface TimedStep extends Step {
  /** Milliseconds since the request left. */
  at: number;
}

export class Lane {
  text = "";
  readonly marks: Mark[] = [];
  /** Verify steps, where the server told them. */
  readonly steps: TimedStep[] = [];
  readonly figures: Figures;
  /** Milliseconds from the request to the reply's end; null while it runs. */
  total: number | null = null;
  readonly #sent: number;
  readonly #specs: (Spec | undefined)[] = []; // one for each mark

  /** sentAt: when response.create was sent, in milliseconds of the clock that all times are of. */
  constructor(sentAt: number) {
    this.#sent = sentAt;
    this.figures = new Figures(sentAt);
  }

  delta(text: string, spec: Spec | undefined, now: number): void {
    const at = now - this.#sent;
    this.figures.delta(now, spec);
    this.text += text;
    this.marks.push({ at, text, tokens: spec?.emitted ?? 0 });
    this.#specs.push(spec);
    for (const step of spec?.steps ?? []) this.steps.push({ at, ...step });
  }

  finish(usage: Usage | null | undefined, now: number): void {
    this.figures.finish(usage, now);
    this.total = now - this.#sent;
  }

  /** The figures as they stood `at` milliseconds after the request. */
  figuresAt(at: number): Figures {
    if (this.total !== null && at >= this.total) return this.figures;
    const figures = new Figures(this.#sent);
    for (const [i, mark] of this.marks.slice(0, this.arrived(at)).entries()) {
      figures.delta(this.#sent + mark.at, this.#specs[i]);
    }
    return figures;
  }

  /** How many marks had come `at` milliseconds after the request. */
  arrived(at: number): number {
    let low = 0;
    let high = this.marks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.marks[middle]?.at ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
