// What is known of one reply's verify steps, bounded: the newest steps and tokens whole, the older ones in the sums alone.

import type { Spec, Step, Usage } from "../wire/events";
import { Figures } from "./figures";
import { Provenance, type TracedToken } from "./provenance";
import { Recent } from "./recent";
import { Tally } from "./tally";
import { soundStep } from "./tree";

const KEPT_STEPS = 512;
const KEPT_TOKENS = 2000;

export class Trace {
  /** The reply has ended, or will not go on. */
  ended = false;
  readonly figures: Figures;
  readonly tally = new Tally();
  readonly #steps = new Recent<Step>(KEPT_STEPS);
  readonly #tokens = new Recent<TracedToken>(KEPT_TOKENS);
  readonly #provenance = new Provenance();

  /** sentAt: when response.create was sent, as performance.now(); null for a reply that is taken up midway. */
  constructor(sentAt: number | null) {
    this.figures = new Figures(sentAt);
  }

  /** The newest steps, oldest first. */
  get steps(): readonly Step[] {
    return this.#steps.items;
  }

  /** Steps that came before `steps[0]`. */
  get dropped(): number {
    return this.#steps.dropped;
  }

  /** The newest parts of the text, oldest first. */
  get tokens(): readonly TracedToken[] {
    return this.#tokens.items;
  }

  /** Tokens that came before `tokens[0]`. */
  get droppedTokens(): number {
    return this.#tokens.dropped;
  }

  /** index: steps of the reply before it. undefined where it is not kept any more. */
  step(index: number): Step | undefined {
    return this.#steps.at(index);
  }

  /** index: tokens of the reply before it. undefined where it is not kept any more. */
  token(index: number): TracedToken | undefined {
    return this.#tokens.at(index);
  }

  /** True while every step behind the prompt said that nobody may guess. */
  get off(): boolean {
    return this.tally.off > 0 && this.tally.off + this.tally.prefill === this.tally.steps;
  }

  /** One text event: its text, its x_spec and when it came, as performance.now(). */
  push(text: string, spec: Spec | undefined, now: number): void {
    this.#take(spec, now);
    for (const token of this.#provenance.take(text, spec?.spans)) this.#tokens.push(token);
  }

  /** One event of thoughts, which are no part of the text: its x_spec and when it came. */
  think(spec: Spec | undefined, now: number): void {
    this.#take(spec, now);
    this.#provenance.thought((spec?.steps ?? []).reduce((sum, { tokens }) => sum + tokens.length, 0));
  }

  #take(spec: Spec | undefined, now: number): void {
    this.figures.delta(now, spec);
    const steps = (spec?.steps ?? []).map(soundStep);
    this.tally.add(steps, spec?.emitted ?? 0);
    for (const step of steps) {
      this.#provenance.came(step, this.#steps.total);
      this.#steps.push(step);
    }
  }

  /** The reply is over, and the server did not get to say how it ended. */
  close(): void {
    this.ended = true;
  }

  /** The reply has ended; now: as performance.now(). */
  finish(usage: Usage | null | undefined, now: number): void {
    this.close();
    this.figures.finish(usage, now);
  }
}
