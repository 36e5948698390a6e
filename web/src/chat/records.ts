// When the open conversation is kept, and how it comes back: the shelf with the browser's clocks and channels.

import { recall, remember } from "../settings/storage";
import { Cabinet, type Kept } from "./cabinet";
import { type Channel, channel } from "./channel";
import { type Outside, Shelf, type Word } from "./shelf";
import { keep, type Running, runs, type Turn, unkeep } from "./turns";
import { Writers } from "./writers";

const PAUSE_MS = 1_000; // while a reply streams it is kept this often
const WATCH_MS = 5_000; // a tab that writes a reply is asked this often whether it is still there
const session = () => sessionStorage; // each tab has its own open conversation

export interface RecordsOptions {
  turns(): Turn[];
  /** Whether a reply comes to this tab. */
  busy(): boolean;
  /** Whether the person is at a turn, so that it must not change under the hands. */
  editing(): boolean;
  /** Whether the last reply comes to another tab. */
  elsewhere(): boolean;
  /** These turns in place of the open ones; running: what becomes of a last one that was running. */
  show(turns: Turn[], running: Running): void;
}

export class Records {
  readonly shelf: Shelf;
  readonly #options: RecordsOptions;
  readonly #channel: Channel<Word>;
  readonly #writers: Writers;
  #timer = 0;
  #watch = 0;
  #places = 0; // counts up each time something else is to stand in the open one's place
  #kept = mark([]); // of what was kept or shown last
  #missed: Word | null = null; // what another tab told while the turns could not change

  constructor(options: RecordsOptions, cabinet: Outside["cabinet"] = new Cabinet()) {
    this.#options = options;
    this.#channel = channel<Word>("paceline.conversations", (word) => void this.#heard(word));
    this.#writers = new Writers((id) => id === this.shelf.id && options.busy());
    this.shelf = new Shelf({ cabinet, tell: (word) => this.#channel.tell(word), newId, now: Date.now });
  }

  /** After a reload the conversation that was open is open again. */
  async start(): Promise<void> {
    const { id, reply } = recall(session, "open");
    const [load] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    await this.shelf.refresh();
    if (typeof id === "string") await this.#show(id, load?.type === "reload", reply);
  }

  /** Something may have changed: growing text is kept soon, all else at once. */
  changed(): void {
    if (this.#missed !== null && !this.#at()) {
      void this.#heard(this.#missed);
      this.#missed = null;
    }
    const { shape, length } = this.#mark();
    if (shape !== this.#kept.shape) {
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => this.now());
    } else if (length !== this.#kept.length) this.#timer ||= window.setTimeout(() => this.now(), PAUSE_MS);
  }

  /** Keeps what is not kept yet. */
  now(): void {
    if (this.#same()) return;
    const saved = this.shelf.save(this.#options.turns().map(keep));
    this.#settle();
    void saved.then(() => this.#remember()); // it may have become a copy
  }

  fresh(): void {
    this.#places += 1;
    this.shelf.fresh();
    this.#settle();
  }

  async open(id: string): Promise<void> {
    await this.#show(id, false);
  }

  /** The reply comes to another tab from now on, which keeps it. */
  giveWay(): void {
    this.#settle();
  }

  /** reply: the name of the one that ran, which may not have reached the store before the page went. */
  async #show(id: string, resume: boolean, reply?: unknown): Promise<void> {
    this.#places += 1;
    const place = this.#places;
    let kept = await this.shelf.find(id);
    const running = kept !== null && runs(kept.turns);
    const elsewhere = running && (await this.#writers.ask(id));
    if (running && !elsewhere) kept = await this.shelf.find(id); // it may have ended while its tab was asked
    // The person was faster, and goes on with what was opened or begun meanwhile.
    if (!kept || place !== this.#places || this.#options.turns().length > 0) return;
    this.shelf.take(kept);
    const last = kept.turns.at(-1);
    if (last && running && last.text === "" && typeof reply === "string") last.place ??= { id: reply, seq: 0 };
    this.#put(kept, elsewhere ? "elsewhere" : resume ? "here" : "lost");
  }

  #put(kept: Kept, running: Running): void {
    this.#options.show(unkeep(kept.turns), running);
    this.#settle();
  }

  // What stands there now is on its way to the store, or comes from it.
  #settle(): void {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#missed = null;
    this.#kept = this.#mark();
    this.#remember();
    this.#watchOn();
  }

  #remember(): void {
    remember(session, "open", { id: this.shelf.id, reply: this.#options.turns().at(-1)?.place?.id });
  }

  #watchOn(): void {
    clearTimeout(this.#watch);
    if (this.#options.elsewhere()) this.#watch = window.setTimeout(() => void this.#follow(), WATCH_MS);
  }

  #mark(): Mark {
    return mark(this.#options.turns());
  }

  #same(): boolean {
    const { shape, length } = this.#mark();
    return shape === this.#kept.shape && length === this.#kept.length;
  }

  #at(): boolean {
    return this.#options.busy() || this.#options.editing();
  }

  async #heard(word: Word): Promise<void> {
    const place = this.#places;
    const kept = await this.shelf.heard(word);
    if (!kept || place !== this.#places || !this.#same()) return;
    if (this.#at()) {
      this.#missed = word;
      return;
    }
    this.shelf.adopt(kept);
    this.#put(kept, "lost");
  }

  // The word that a reply is over may never come: the tab that it came to may be gone.
  async #follow(): Promise<void> {
    const place = this.#places;
    const { id } = this.shelf;
    const goesOn = await this.#writers.ask(id);
    const kept = goesOn ? null : await this.shelf.find(id);
    if (place !== this.#places || !this.#options.elsewhere()) return;
    if (goesOn || this.#at()) this.#watchOn();
    else if (kept) {
      this.shelf.adopt(kept);
      this.#put(kept, "lost");
    } else this.#options.show(this.#options.turns(), "lost");
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
