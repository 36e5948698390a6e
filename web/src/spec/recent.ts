// The newest of many things, whose memory does not grow with how many there were.

export class Recent<T> {
  /** The newest, oldest first. */
  readonly items: T[] = [];
  /** How many came before `items[0]`. */
  dropped = 0;
  readonly #keep: number;
  readonly #most: number;

  /** keep: how many are kept at least; up to an eighth more, so that the old ones go in lumps and not one by one. */
  constructor(keep: number) {
    this.#keep = keep;
    this.#most = keep + Math.ceil(keep / 8);
  }

  push(item: T): void {
    this.items.push(item);
    if (this.items.length <= this.#most) return;
    const over = this.items.length - this.#keep;
    this.items.splice(0, over);
    this.dropped += over;
  }

  /** How many there were in all. */
  get total(): number {
    return this.dropped + this.items.length;
  }

  /** The one that came after `index` others; undefined where it is no longer kept, or never came. */
  at(index: number): T | undefined {
    return this.items[index - this.dropped];
  }
}
