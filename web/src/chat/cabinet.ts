// The conversations kept in this browser: an IndexedDB store, one record a conversation and a small one for the list.

import { createStore, promisifyRequest, type UseStore } from "idb-keyval";
import { type KeptTurn, toStore, turnsFrom } from "./turns";

export interface Kept {
  id: string;
  /** Given by hand; null: the first words. */
  title: string | null;
  turns: KeptTurn[];
  /** Milliseconds since 1970. */
  at: number;
  /** Counts up with every save of the turns, whichever tab made it; a title is none of them. */
  revision: number;
}

/** A line of the list. */
export interface Entry {
  id: string;
  title: string;
  at: number;
}

const LONGEST_TITLE = 60; // characters
const UNTITLED = "Conversation";
const LOOKED_AT = 100; // lines

// Some that draw nothing are letters or symbols all the same, such as the Hangul fillers and the empty Braille pattern.
const VISIBLE = /[^\s\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** `text` without the space around it; null where nothing of it can be seen. */
export function titleFrom(text: string): string | null {
  return VISIBLE.test(text) ? text.trim() : null;
}

export function titleOf({ title, turns }: Pick<Kept, "title" | "turns">): string {
  const lines = turns.find(({ role }) => role === "user")?.text.split("\n", LOOKED_AT) ?? [];
  const line = Array.from(lines.map(titleFrom).find((words) => words !== null) ?? "");
  const short = line.length > LONGEST_TITLE ? `${line.slice(0, LONGEST_TITLE - 1).join("")}…` : line.join("");
  return titleFrom(title ?? "") ?? (short || UNTITLED);
}

/** Whether what was stored is a line of the list: another version of the page may have stored something else. */
export function isEntry(stored: unknown): stored is Entry {
  const { id, title, at } = (stored ?? {}) as Partial<Entry>;
  return typeof id === "string" && typeof title === "string" && typeof at === "number";
}

/** An entry with a title that can be seen and a time that can be compared. */
export function shown({ id, title, at }: Entry): Entry {
  return { id, title: titleFrom(title) ?? UNTITLED, at: Number.isFinite(at) ? at : 0 };
}

/** What was stored as the conversation `id`, as far as it is one; undefined where it is none. */
export function keptFrom(id: string, stored: unknown): Kept | undefined {
  const { title, turns, at, revision } = (stored ?? {}) as Partial<Kept>;
  if (!Array.isArray(turns)) return undefined;
  return {
    ...(stored as object), // a newer page may have stored more
    id,
    title: typeof title === "string" ? title : null,
    turns: turnsFrom(turns),
    at: Number.isFinite(at) ? Number(at) : 0,
    revision: Number.isSafeInteger(revision) ? Number(revision) : 0, // NaN would equal no revision, not even itself
  };
}

/** Every method rejects where the browser's storage is full, forbidden or broken. */
export class Cabinet {
  #store: UseStore | null = null;

  /** Newest first. */
  async list(): Promise<Entry[]> {
    const range = IDBKeyRange.bound("entry:", "entry;", false, true);
    const entries = await this.#use<unknown[]>("readonly", (store) => promisifyRequest(store.getAll(range)));
    return entries
      .filter(isEntry)
      .map(shown)
      .sort((a, b) => b.at - a.at);
  }

  async load(id: string): Promise<Kept | undefined> {
    return keptFrom(id, await this.#use("readonly", (store) => promisifyRequest(store.get(`kept:${id}`))));
  }

  /**
   * Puts it there, under the title it has there: only `rename` changes that. False, and nothing is changed, where what
   * is there is not of the revision `seen`.
   */
  save(kept: Kept, seen: number): Promise<boolean> {
    return this.#change(kept.id, (there) => {
      if (there === undefined) return kept;
      return there.revision === seen ? { ...there, ...kept, title: there.title } : undefined;
    });
  }

  /** False where it is not there. title: null for the first words. */
  rename(id: string, title: string | null): Promise<boolean> {
    return this.#change(id, (there) => there && { ...there, title });
  }

  remove(id: string): Promise<void> {
    return this.#use("readwrite", (store) => {
      store.delete(`kept:${id}`);
      store.delete(`entry:${id}`);
      return promisifyRequest(store.transaction);
    });
  }

  // In one transaction, so that no other tab comes between. to: what is to be there; undefined: as it is.
  #change(id: string, to: (there: Kept | undefined) => Kept | undefined): Promise<boolean> {
    return this.#use("readwrite", async (store) => {
      const kept = to(keptFrom(id, await promisifyRequest(store.get(`kept:${id}`))));
      if (kept === undefined) return false;
      const entry: Entry = { id, title: titleOf(kept), at: kept.at };
      store.put({ ...kept, turns: toStore(kept.turns) }, `kept:${id}`);
      store.put(entry, `entry:${id}`);
      await promisifyRequest(store.transaction);
      return true;
    });
  }

  async #use<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => T | PromiseLike<T>): Promise<T> {
    this.#store ??= createStore("paceline", "conversations"); // late, since the browser may throw already there
    return this.#store(mode, work);
  }
}
