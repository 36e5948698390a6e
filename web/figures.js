// The arithmetic of one reply's speed, without a clock of its own: every time is handed in, in milliseconds.
//
// TTFT is the time from sending response.create to the first text; TPOT is (last - first) / (tokens - 1), so it says
// how fast text keeps coming and not how long it took to begin. One text event is one verify step, and `emitted`
// counts the tokens it committed, the bonus token included.

const count = (value) => (Number.isFinite(value) && value > 0 ? Math.floor(value) : 0);

export class Figures {
  #sent;
  #first = null;
  #last = null;
  #emitted = 0;
  tokens = 0;
  drafted = 0;
  accepted = 0;

  constructor(sentAt) {
    this.#sent = sentAt;
  }

  /** One text event at time `now`; `spec` is its x_spec, which a server without speculation figures leaves out. */
  delta(now, spec) {
    this.#first ??= now;
    this.#last = now;
    const emitted = count(spec?.emitted);
    this.#emitted += emitted;
    this.tokens = this.#emitted;
    this.drafted += count(spec?.drafted);
    this.accepted += count(spec?.accepted);
  }

  /** The server's own count, which also holds tokens that have no text, such as the one that ended the reply. */
  finish(usage) {
    this.tokens = count(usage?.output_tokens) || this.tokens;
  }

  get ttft() {
    return this.#first === null ? null : this.#first - this.#sent;
  }

  get tpot() {
    const span = this.#last - this.#first;
    return this.tokens > 1 && span > 0 ? span / (this.tokens - 1) : null;
  }

  get rate() {
    return this.tpot === null ? null : 1000 / this.tpot;
  }

  /** Tokens per verify step: 1 is plain decoding. Of the events seen, so `finish` does not change it. */
  get perStep() {
    const steps = Math.max(1, this.#emitted - this.accepted); // a reply cut inside its only step has no own token left
    return this.#emitted === 0 ? null : this.#emitted / steps;
  }

  /** The share of guesses that became text, or null when none was made. */
  get acceptance() {
    return this.drafted === 0 ? null : this.accepted / this.drafted;
  }
}

const NONE = "–";

export function milliseconds(value) {
  if (value === null) return NONE;
  if (value >= 9950) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 999.5) return `${(value / 1000).toFixed(2)} s`;
  return `${value.toFixed(value < 99.95 ? 1 : 0)} ms`;
}

export function decimal(value) {
  return value === null ? NONE : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

export function percent(value) {
  return value === null ? NONE : `${Math.round(value * 100)} %`;
}
