// When the open conversation is kept, and how it comes back: the shelf with the browser's clocks and channels.

import { recall, remember } from "../settings/storage";
import { Cabinet } from "./cabinet";
import { Shelf, type Word } from "./shelf";
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
  #kept = ""; // the mark of what was kept or shown last

  constructor(options: RecordsOptions) {
    this.#options = options;
    this.shelf = new Shelf({
      cabinet: new Cabinet(),
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

  /** Something may have changed; it is kept soon, or at once where nothing runs any more. */
  changed(): void {
    if (this.#timer || this.#mark() === this.#kept) return;
    const running = this.#options.turns().at(-1)?.state === "running";
    this.#timer = window.setTimeout(() => this.now(), running ? PAUSE_MS : 0);
  }

  /** Keeps what is not kept yet. */
  now(): void {
    if (this.#mark() === this.#kept) return;
    void this.shelf.save(this.#options.turns().map(keep));
    this.#settle();
  }

  fresh(): void {
    this.shelf.fresh();
    this.#settle();
  }

  async open(id: string): Promise<void> {
    await this.#show(id, false);
  }

  async #show(id: string, resume: boolean): Promise<void> {
    const kept = await this.shelf.open(id);
    if (!kept) return;
    if (this.#mark() !== "") {
      this.shelf.fresh(); // the person was faster, and goes on with what was begun
      return;
    }
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

  // Other turns have other marks; text only grows at the end.
  #mark(): string {
    const turns = this.#options.turns();
    const last = turns.at(-1);
    return last ? `${turns.length} ${last.key} ${last.text.length} ${last.state}` : "";
  }

  async #heard(word: Word): Promise<void> {
    const kept = await this.shelf.heard(word);
    if (!kept || this.#mark() !== this.#kept || this.#options.at()) return;
    this.shelf.adopt(kept);
    this.#options.show(unkeep(kept.turns), false);
    this.#settle();
  }
}

// Not crypto.randomUUID, which a page has only where it came over HTTPS or from the machine itself.
function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
}
