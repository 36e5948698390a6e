import { describe, expect, it } from "vitest";
import { titleOf } from "../../src/chat/cabinet";
import { COPIED, GONE, NOT_KEPT, RESTORED, Shelf, type Word } from "../../src/chat/shelf";
import type { KeptTurn } from "../../src/chat/turns";
import { Drawer, turn } from "./drawer";

let ids = 0;

function tab(drawer: Drawer) {
  const words: Word[] = [];
  const shelf = new Shelf({
    cabinet: drawer,
    tell: (word) => words.push(word),
    newId: () => {
      ids += 1;
      return `id${ids}`;
    },
    now: () => Math.round(performance.now() * 1e6), // never the same twice
  });
  return { shelf, words };
}

async function opened(shelf: Shelf, id: string) {
  const kept = await shelf.find(id);
  if (kept) shelf.take(kept);
  return kept;
}

/** Two tabs with the same conversation open. */
async function pair() {
  const drawer = new Drawer();
  const one = tab(drawer);
  await one.shelf.save([turn("Hi")]);
  const two = tab(drawer).shelf;
  await opened(two, one.shelf.id);
  return { drawer, one: one.shelf, two, words: one.words, id: one.shelf.id };
}

const titles = (shelf: Shelf) => shelf.entries.value.map(({ title }) => title);

describe("titleOf", () => {
  it("is the given one, or the first words, shortened", () => {
    expect(titleOf({ title: "Mine", turns: [turn("Hi")] })).toBe("Mine");
    expect(titleOf({ title: null, turns: [turn("\n Hi there\nand more")] })).toBe("Hi there");
    expect(Array.from(titleOf({ title: null, turns: [turn("🦆".repeat(80))] }))).toHaveLength(60);
    expect(titleOf({ title: null, turns: [] })).toBe("Conversation");
  });

  it("is nothing that cannot be seen", () => {
    for (const blank of ["", " \n ", "\u200b", "\u3164\u2800\u00ad", "\u202e"]) {
      expect(titleOf({ title: blank, turns: [turn("Hi")] })).toBe("Hi");
      expect(titleOf({ title: null, turns: [turn(`${blank}\nHi`)] })).toBe("Hi");
      expect(titleOf({ title: null, turns: [turn(blank)] })).toBe("Conversation");
    }
    for (const seen of ["é", "漢", "🦆", "…", "٣"]) expect(titleOf({ title: seen, turns: [] })).toBe(seen);
  });
});

describe("Shelf", () => {
  it("keeps the open conversation, tells the others, and opens it again", async () => {
    const drawer = new Drawer();
    const { shelf, words } = tab(drawer);
    const { id } = shelf;
    await shelf.save([turn("Hi"), turn("He", { role: "assistant", state: "running" })]);
    await shelf.save([turn("Hi"), turn("Hello", { role: "assistant" })]);
    expect(words).toEqual([
      { id, settled: false },
      { id, settled: true },
    ]);
    shelf.fresh();
    expect(shelf.id).not.toBe(id);
    expect((await opened(shelf, id))?.turns.map(({ text }) => text)).toEqual(["Hi", "Hello"]);
    expect(shelf.id).toBe(id);
    expect(await shelf.find("none")).toBeNull();
  });

  it("does not keep an empty one, and forgets one that became empty", async () => {
    const drawer = new Drawer();
    const { shelf } = tab(drawer);
    await shelf.save([]);
    expect(drawer.kept.size).toBe(0);
    await shelf.save([turn("Hi")]);
    await shelf.save([]);
    expect([drawer.kept.size, titles(shelf)]).toEqual([0, []]);
  });

  it("renames, the open one too, and goes on keeping it", async () => {
    const { shelf } = tab(new Drawer());
    await shelf.save([turn("Hi")]);
    const at = shelf.entries.value.map((entry) => entry.at);
    await shelf.rename(shelf.id, " Mine ");
    expect([titles(shelf), shelf.title]).toEqual([["Mine"], "Mine"]);
    expect(shelf.entries.value.map(({ at }) => at)).toEqual(at); // it stays where it was in the list
    await shelf.save([turn("Hi"), turn("More")]);
    expect([titles(shelf), shelf.notice.value]).toEqual([["Mine"], ""]);
    await shelf.rename(shelf.id, "");
    expect(titles(shelf)).toEqual(["Hi"]);
    await shelf.rename("none", "x");
    expect(titles(shelf)).toEqual(["Hi"]);
  });

  it("removes, and brings back", async () => {
    const { shelf } = tab(new Drawer());
    await shelf.save([turn("Hi")]);
    const { id } = shelf;
    await shelf.remove(id);
    expect(titles(shelf)).toEqual([]);
    await shelf.restore();
    expect([titles(shelf), shelf.removed.value]).toEqual([["Hi"], null]);
    expect((await shelf.find(id))?.turns).toEqual([turn("Hi")]);
  });

  it("says where a conversation of its list is gone, and not where it never was there", async () => {
    const drawer = new Drawer();
    const one = tab(drawer).shelf;
    await one.save([turn("Hi")]);
    const two = tab(drawer).shelf;
    await two.refresh();
    await one.remove(one.id);
    expect([await two.find("none"), two.notice.value]).toEqual([null, ""]);
    expect([await two.find(one.id), two.notice.value, titles(two)]).toEqual([null, GONE, []]);
  });

  it("brings back as a copy what another tab has kept again, and tells the others", async () => {
    const { drawer, one, two, words, id } = await pair();
    await one.remove(id);
    await two.save([turn("Hi"), turn("Two")]);
    await one.restore();
    expect(one.notice.value).toBe(RESTORED);
    expect(titles(one)).toEqual(["Hi", "Hi (copy)"]);
    expect([...drawer.kept.values()].map(({ turns }) => turns.length)).toEqual([2, 1]);
    expect(words.at(-1)?.id).toBe([...drawer.kept.keys()][1]);
  });

  it("can still bring back what could not be written", async () => {
    const drawer = new Drawer();
    const { shelf } = tab(drawer);
    await shelf.save([turn("Hi")]);
    await shelf.remove(shelf.id);
    drawer.full = true;
    await shelf.restore();
    expect([shelf.notice.value, shelf.removed.value?.turns]).toEqual([NOT_KEPT, [turn("Hi")]]);
    drawer.full = false;
    await shelf.restore();
    expect([titles(shelf), shelf.removed.value]).toEqual([["Hi"], null]);
  });

  it("writes over nothing that another tab wrote", async () => {
    const { drawer, one, two } = await pair();
    await one.save([turn("Hi"), turn("One")]);
    await two.save([turn("Hi"), turn("Two")]);
    expect(two.notice.value).toBe(COPIED);
    expect(two.id).not.toBe(one.id);
    expect([...drawer.kept.values()].map(({ turns }) => turns.at(-1)?.text)).toEqual(["One", "Two"]);
    expect(titles(two)).toEqual(["Hi", "Hi (copy)"]);
  });

  it("renames without taking over turns that another tab wrote and this one never showed", async () => {
    const { drawer, one, two, id } = await pair();
    await two.save([turn("Hi"), turn("Two")]);
    await one.rename(id, "Mine");
    expect(drawer.kept.get(id)).toMatchObject({ title: "Mine", turns: [turn("Hi"), turn("Two")] });
    await one.save([turn("Hi"), turn("One")]);
    expect([one.notice.value, titles(one)]).toEqual([COPIED, ["Mine", "Mine (copy)"]]);
    expect(drawer.kept.get(id)?.turns).toEqual([turn("Hi"), turn("Two")]);
  });

  it("tells the others of a new name, so that what they say next is no copy", async () => {
    const { one, two, words } = await pair();
    await one.rename(two.id, "Mine");
    expect(await two.heard(words.at(-1) as Word)).toBeNull(); // its turns are the same
    expect(two.title).toBe("Mine");
    await two.save([turn("Hi"), turn("Two")]);
    expect([titles(two), two.notice.value]).toEqual([["Mine"], ""]);
  });

  it("keeps a name that came while another tab was at a reply", async () => {
    const drawer = new Drawer();
    const one = tab(drawer).shelf;
    await one.save([turn("Hi"), turn("He", { role: "assistant", state: "running" })]);
    await tab(drawer).shelf.rename(one.id, "Mine"); // the word of it is still on its way
    await one.save([turn("Hi"), turn("Hello", { role: "assistant" })]);
    expect([titles(one), one.notice.value]).toEqual([["Mine"], ""]);
  });

  it("hears of another tab's turns once they are whole", async () => {
    const { one, two } = await pair();
    await one.save([turn("Hi"), turn("One")]);
    expect(await two.heard({ id: one.id, settled: false })).toBeNull();
    const kept = await two.heard({ id: one.id, settled: true });
    expect(kept?.turns.length).toBe(2);
    if (kept) two.adopt(kept);
    expect(await two.heard({ id: one.id, settled: true })).toBeNull();
    await two.save([turn("Hi"), turn("One"), turn("Two")]);
    expect([two.id, two.notice.value]).toEqual([one.id, ""]);
    expect(await two.heard({ id: "other", settled: true })).toBeNull();
  });

  it("says once that nothing is kept, and again after it could be", async () => {
    const drawer = new Drawer();
    const { shelf } = tab(drawer);
    const told = async (turns: KeptTurn[]) => {
      shelf.notice.value = "";
      await shelf.save(turns);
      return shelf.notice.value;
    };
    drawer.full = true;
    expect(await told([turn("Hi")])).toBe(NOT_KEPT);
    expect(await told([turn("Hi")])).toBe("");
    drawer.full = false;
    expect(await told([turn("Hi")])).toBe("");
    expect(titles(shelf)).toEqual(["Hi"]);
    drawer.full = true;
    expect(await told([turn("Hi"), turn("More")])).toBe(NOT_KEPT);
  });

  it("says of all that was asked for that it could not be done", async () => {
    const drawer = new Drawer();
    const { shelf } = tab(drawer);
    await shelf.save([turn("Hi")]);
    drawer.full = true;
    for (const deed of [() => shelf.rename(shelf.id, "Mine"), () => shelf.remove(shelf.id)]) {
      shelf.notice.value = "";
      await deed();
      expect([shelf.notice.value, shelf.removed.value, titles(shelf)]).toEqual([NOT_KEPT, null, ["Hi"]]);
    }
    drawer.full = false;
    shelf.notice.value = "";
    await shelf.rename("none", "Mine");
    expect(shelf.notice.value).toBe(GONE);
  });
});
