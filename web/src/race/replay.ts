// Both lanes at once, from their recorded times: a place in time that moves while it plays. No clock of its own; every
// `now` is in milliseconds.

export const SPEEDS = [1, 0.5, 0.25] as const;

export class Replay {
  /** Milliseconds of the longer lane. */
  readonly length: number;
  #from: number;
  #since: number | null = null;
  #speed = 1;

  /** It stands at the end until somebody plays it. */
  constructor(length: number) {
    this.length = length;
    this.#from = length;
  }

  get speed(): number {
    return this.#speed;
  }

  /** The place in milliseconds of the recorded race. */
  at(now: number): number {
    const moved = this.#since === null ? 0 : (now - this.#since) * this.#speed;
    return Math.min(this.length, this.#from + moved);
  }

  playing(now: number): boolean {
    return this.#since !== null && this.at(now) < this.length;
  }

  /** From the beginning where it stands at the end. */
  play(now: number): void {
    const place = this.at(now);
    this.#from = place < this.length ? place : 0;
    this.#since = now;
  }

  pause(now: number): void {
    this.seek(this.at(now));
  }

  /** To a place, and stand there. */
  seek(place: number): void {
    this.#from = Math.max(0, Math.min(this.length, place));
    this.#since = null;
  }

  /** Goes on from where it is. */
  pace(speed: number, now: number): void {
    this.#from = this.at(now);
    if (this.#since !== null) this.#since = now;
    this.#speed = speed;
  }
}
