// The arithmetic of one reply's speed, without a clock of its own: every time is handed in, in milliseconds.
//
// TTFT is the time from sending response.create to the first text; TPOT is (end - first) / (tokens - 1), as the server
// and `paceline bench` count it, so it says how fast text keeps coming and not how long it took to begin. While a reply
// runs, its newest text is its end. One text event tells of one verify step or of several that were merged, or of none;
// `emitted` counts the tokens they committed, their bonus tokens included.

import type { Spec, Usage } from "../wire/events";

export class Figures {
  readonly #sent: number | null;
  #first: number | null = null;
  #end = 0;
  #emitted = 0;
  tokens = 0;
  drafted = 0;
  accepted = 0;
  /** Prompt tokens, and how many of them were in the cache; null while the server has not told. */
  prompt: number | null = null;
  cached: number | null = null;

  /** sentAt: null where the reply is taken up after it had begun, so that its first text was not seen to come. */
  constructor(sentAt: number | null) {
    this.#sent = sentAt;
  }

  /** One text event at time `now`; `spec` is its x_spec, which a server without speculation figures leaves out. */
  delta(now: number, spec: Spec | undefined): void {
    this.#first ??= now;
    this.#end = now;
    this.#emitted += spec?.emitted ?? 0;
    this.tokens = this.#emitted;
    this.drafted += spec?.drafted ?? 0;
    this.accepted += spec?.accepted ?? 0;
    this.prompt = spec?.input_tokens ?? this.prompt;
    this.cached = spec?.cached_tokens ?? this.cached;
  }

  /**
   * The reply has ended at time `now`. The server's own count also holds tokens that have no text, such as the one that
   * ended the reply, and the time until then belongs to them.
   */
  finish(usage: Usage | null | undefined, now: number): void {
    this.#end = now;
    this.tokens = usage?.output_tokens || this.tokens;
    this.prompt = usage?.input_tokens ?? this.prompt;
    this.cached = usage?.input_token_details?.cached_tokens ?? this.cached;
  }

  get ttft(): number | null {
    return this.#first === null || this.#sent === null ? null : this.#first - this.#sent;
  }

  get tpot(): number | null {
    const span = this.#end - (this.#first ?? this.#end);
    const tokens = this.#sent === null ? this.#emitted : this.tokens; // what came before it was taken up took no time here
    return tokens > 1 && span > 0 ? span / (tokens - 1) : null;
  }

  get rate(): number | null {
    return this.tpot === null ? null : 1000 / this.tpot;
  }

  /** Verify steps, and those that plain decoding takes for the same tokens. Of the events seen. */
  get steps(): { taken: number; plain: number } {
    const plain = this.#emitted;
    return { taken: Math.min(plain, Math.max(1, plain - this.accepted)), plain }; // a reply cut inside its only step has no own token left
  }

  /** Tokens per verify step: 1 is plain decoding. Of the events seen, so `finish` does not change it. */
  get perStep(): number | null {
    const { taken, plain } = this.steps;
    return plain === 0 ? null : plain / taken;
  }

  /** The share of guesses that became text, or null when none was made. */
  get acceptance(): number | null {
    return this.drafted === 0 ? null : this.accepted / this.drafted;
  }

  /** The share of the prompt that was in the cache, or null while it is not known. */
  get cacheHit(): number | null {
    return this.prompt && this.cached !== null ? this.cached / this.prompt : null;
  }
}
