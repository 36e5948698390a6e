// The list of kept conversations, and which of them this tab has open. Tabs tell each other what they kept, and none
// writes over what another one wrote.

import { type Signal, signal } from "@preact/signals";
import type { Cabinet, Entry, Kept } from "./cabinet";
import { titleFrom, titleOf } from "./cabinet";
import { type KeptTurn, runs } from "./turns";

export const NOT_KEPT =
  "This browser keeps no conversations, its storage is full or forbidden; export what you want to have later.";
export const COPIED = "This conversation was changed in another tab too; yours goes on as a copy.";
export const GONE = "This conversation is not there any more; it was deleted in another tab.";
export const RESTORED = "Another tab goes on with this conversation; what was deleted here is back as a copy.";

/** What tabs tell each other: a conversation was kept or removed. settled: no reply of it runs. */
export interface Word {
  id: string;
  settled: boolean;
}

/** The browser's own things. */
export interface Outside {
  cabinet: Pick<Cabinet, "list" | "load" | "save" | "rename" | "remove">;
  /** To the other tabs. */
  tell(word: Word): void;
  newId(): string;
  /** Milliseconds since 1970. */
  now(): number;
}

export class Shelf {
  readonly entries: Signal<Entry[]> = signal([]);
  readonly notice: Signal<string> = signal("");
  /** What was removed last and can be had back. */
  readonly removed: Signal<Kept | null> = signal(null);
  /** The conversation that is open; its revision is 0 before it was kept. */
  #current: Pick<Kept, "id" | "title" | "revision">;
  #queue: Promise<unknown> = Promise.resolve();
  #failed = false;
  readonly #outside: Outside;

  constructor(outside: Outside) {
    this.#outside = outside;
    this.#current = { id: outside.newId(), title: null, revision: 0 };
  }

  get id(): string {
    return this.#current.id;
  }

  /** Of the open conversation; null: the first words. */
  get title(): string | null {
    return this.#current.title;
  }

  /** A conversation that is not kept yet. */
  fresh(): void {
    this.#current = { id: this.#outside.newId(), title: null, revision: 0 };
  }

  refresh(): Promise<void> {
    return this.#after(async () => {
      this.entries.value = await this.#outside.cabinet.list();
    });
  }

  /** The kept conversation; null where there is none, which is told where the list has it. */
  find(id: string): Promise<Kept | null> {
    return this.#after(async () => {
      const kept = await this.#outside.cabinet.load(id);
      if (kept) return kept;
      if (this.entries.value.some((entry) => entry.id === id)) {
        this.notice.value = GONE;
        await this.#list();
      }
      return null;
    });
  }

  /** It is the open one from now on. */
  take({ id, title, revision }: Kept): void {
    this.#current = { id, title, revision };
  }

  /** Keeps the open conversation as it is now; one without turns is not kept. */
  save(turns: KeptTurn[]): Promise<void> {
    const current = this.#current; // another one may be open when its turn comes
    return this.#after(async () => {
      if (turns.length === 0) {
        if (current.revision > 0) await this.#remove(current.id);
        current.revision = 0;
        return;
      }
      if (!(await this.#put(current, turns))) {
        const title = copyOf({ title: current.title, turns });
        Object.assign(current, { id: this.#outside.newId(), title, revision: 0 });
        await this.#put(current, turns);
        this.notice.value = COPIED;
      }
      this.#outside.tell({ id: current.id, settled: !runs(turns) });
      await this.#list();
    });
  }

  /** title: "" for the first words again. */
  rename(id: string, title: string): Promise<void> {
    return this.#asked(async () => {
      const given = titleFrom(title);
      if (await this.#outside.cabinet.rename(id, given)) {
        if (id === this.#current.id) this.#current.title = given;
        this.#outside.tell({ id, settled: false }); // of the turns there is no news
      } else this.notice.value = GONE;
      await this.#list();
    });
  }

  /** Removes a kept conversation; `restore` brings it back. */
  remove(id: string): Promise<void> {
    return this.#asked(async () => {
      const kept = (await this.#outside.cabinet.load(id)) ?? null;
      await this.#remove(id);
      this.removed.value = kept; // only now, for the store may have refused it
    });
  }

  restore(): Promise<void> {
    return this.#asked(async () => {
      const kept = this.removed.value;
      if (!kept) return;
      let { id } = kept;
      if (!(await this.#outside.cabinet.save(kept, 0))) {
        id = this.#outside.newId();
        await this.#outside.cabinet.save({ ...kept, id, title: copyOf(kept) }, 0);
        this.notice.value = RESTORED;
      }
      this.removed.value = null;
      this.#outside.tell({ id, settled: false });
      await this.#list();
    });
  }

  /** What another tab told. Returns the open conversation where it was that and has settled; null otherwise. */
  heard({ id, settled }: Word): Promise<Kept | null> {
    return this.#after(async () => {
      await this.#list();
      const current = this.#current;
      if (id !== current.id) return null;
      const kept = await this.#outside.cabinet.load(id);
      if (!kept) return null;
      current.title = kept.title; // it can be taken over at any time, the turns only whole
      return settled && kept.revision !== current.revision ? kept : null;
    });
  }

  /** The turns of the open conversation are now as another tab kept them. */
  adopt({ revision }: Kept): void {
    this.#current.revision = revision;
  }

  async #put(current: Pick<Kept, "id" | "title" | "revision">, turns: KeptTurn[]): Promise<boolean> {
    const kept = { ...current, turns, at: this.#outside.now(), revision: current.revision + 1 };
    const done = await this.#outside.cabinet.save(kept, current.revision);
    this.#failed = false;
    if (done) current.revision = kept.revision;
    return done;
  }

  async #remove(id: string): Promise<void> {
    await this.#outside.cabinet.remove(id);
    this.#outside.tell({ id, settled: false });
    await this.#list();
  }

  async #list(): Promise<void> {
    this.entries.value = await this.#outside.cabinet.list();
  }

  // What the person asked for: that it could not be done is told each time.
  #asked(work: () => Promise<void>): Promise<void> {
    this.#failed = false;
    return this.#after(work);
  }

  // One after the other, so that each finds what the one before it left. A failure ends nothing, and is told once until
  // something could be kept again.
  #after<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => null);
    return done.catch(() => {
      if (!this.#failed) this.notice.value = NOT_KEPT;
      this.#failed = true;
      return null as T;
    });
  }
}

function copyOf(kept: Pick<Kept, "title" | "turns">): string {
  return `${titleOf(kept)} (copy)`;
}
