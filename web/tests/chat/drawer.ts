// Conversations kept in a map, in place of the browser's store.

import { type Kept, titleOf } from "../../src/chat/cabinet";
import type { KeptTurn } from "../../src/chat/turns";

export const turn = (text: string, more: Partial<KeptTurn> = {}): KeptTurn => ({
  role: "user",
  text,
  state: "done",
  note: "",
  ...more,
});

/** What the browser's store would hold, shared by the tabs of a test. */
export class Drawer {
  readonly kept = new Map<string, Kept>();
  full = false;

  async list() {
    return [...this.kept.values()].map((kept) => ({ id: kept.id, title: titleOf(kept), at: kept.at }));
  }
  async load(id: string) {
    return this.kept.get(id);
  }
  async save(kept: Kept, seen: number) {
    if (this.full) throw new DOMException("full", "QuotaExceededError");
    const there = this.kept.get(kept.id);
    if (there && there.revision !== seen) return false;
    this.kept.set(kept.id, structuredClone({ ...kept, title: there ? there.title : kept.title }));
    return true;
  }
  async rename(id: string, title: string | null) {
    if (this.full) throw new DOMException("full", "QuotaExceededError");
    const there = this.kept.get(id);
    if (there) this.kept.set(id, { ...there, title });
    return there !== undefined;
  }
  async remove(id: string) {
    if (this.full) throw new DOMException("full", "QuotaExceededError");
    this.kept.delete(id);
  }
}
