// When the open conversation is kept, and how it comes back: the shelf with the browser's clocks and channels.

import { recall, remember } from "../settings/storage";
import { Cabinet } from "./cabinet";
import { type Outside, Shelf, type Word } from "./shelf";
import { keep, type Turn, unkeep } from "./turns";

const PAUSE_MS = 1_000; // while a reply streams it is kept this often
const session = () => sessionStorage; // each tab has its own open conversation

export interface RecordsOptions {
  turns(): Turn[];
  /** Whether the person or a reply is at the turns, so that they must not change under them. */
  at(): boolean;
  /** These turns in place of the open ones. resume: a reply that was running is this tab's to take up. */
  show(turns: Turn[], resume: boolean): void;
}

export class Records {
  readonly shelf: Shelf;
  readonly #options: RecordsOptions;
  readonly #channel = new BroadcastChannel("paceline.conversations");
  #timer = 0;
  #places = 0; // counts up each time something else is to stand in the open one's place
  #kept = mark([]); // of what was kept or shown last

  constructor(options: RecordsOptions, cabinet: Outside["cabinet"] = new Cabinet()) {
    this.#options = options;
    this.shelf = new Shelf({
      cabinet,
      tell: (word) => this.#channel.postMessage(word),
      newId,
      now: Date.now,
    });
    this.#channel.onmessage = ({ data }: MessageEvent<Word>) => void this.#heard(data);
  }

  /** After a reload the conversation that was open is open again. */
  async start(): Promise<void> {
    const { id } = recall(session, "open");
    const [load] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    await this.shelf.refresh();
    if (typeof id === "string") await this.#show(id, load?.type === "reload");
  }

  /** Something may have changed: growing text is kept soon, all else at once. */
  changed(): void {
    const { shape, length } = this.#mark();
    if (shape !== this.#kept.shape) {
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => this.now());
    } else if (length !== this.#kept.length) this.#timer ||= window.setTimeout(() => this.now(), PAUSE_MS);
  }

  /** Keeps what is not kept yet. */
  now(): void {
    if (this.#same()) return;
    void this.shelf.save(this.#options.turns().map(keep));
    this.#settle();
  }

  fresh(): void {
    this.#places += 1;
    this.shelf.fresh();
    this.#settle();
  }

  async open(id: string): Promise<void> {
    await this.#show(id, false);
  }

  async #show(id: string, resume: boolean): Promise<void> {
    this.#places += 1;
    const place = this.#places;
    const kept = await this.shelf.find(id);
    // The person was faster, and goes on with what was opened or begun meanwhile.
    if (!kept || place !== this.#places || this.#options.turns().length > 0) return;
    this.shelf.take(kept);
    this.#options.show(unkeep(kept.turns), resume);
    this.#settle();
  }

  // What stands there now is on its way to the store, or comes from it.
  #settle(): void {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#kept = this.#mark();
    remember(session, "open", { id: this.shelf.id });
  }

  #mark(): Mark {
    return mark(this.#options.turns());
  }

  #same(): boolean {
    const { shape, length } = this.#mark();
    return shape === this.#kept.shape && length === this.#kept.length;
  }

  async #heard(word: Word): Promise<void> {
    const place = this.#places;
    const kept = await this.shelf.heard(word);
    if (!kept || place !== this.#places || !this.#same() || this.#options.at()) return;
    this.shelf.adopt(kept);
    this.#options.show(unkeep(kept.turns), false);
    this.#settle();
  }
}

interface Mark {
  shape: string;
  length: number;
}

// Other turns have other marks; text only grows at the end.
function mark(turns: Turn[]): Mark {
  const last = turns.at(-1);
  const shape = `${turns.length} ${last?.key} ${last?.state} ${last?.place?.id}`;
  return { shape, length: last ? last.text.length + last.thoughts.length : 0 };
}

// Not crypto.randomUUID, which a page has only where it came over HTTPS or from the machine itself.
function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
}
