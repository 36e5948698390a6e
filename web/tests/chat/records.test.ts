// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Kept } from "../../src/chat/cabinet";
import { Records } from "../../src/chat/records";
import { type KeptTurn, newTurn, type Running, runs, type Turn } from "../../src/chat/turns";
import { Drawer, turn } from "./drawer";

beforeEach(() => sessionStorage.clear());

/** A drawer that hands nothing out before it is told to. */
class Slow extends Drawer {
  #waiting: (() => void)[] = [];

  override async load(id: string) {
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return super.load(id);
  }

  /** Everything that is asked for comes, until nothing more is. */
  async answer(): Promise<void> {
    do {
      for (const resolve of this.#waiting.splice(0)) resolve();
      await new Promise((resolve) => setTimeout(resolve));
    } while (this.#waiting.length > 0);
  }
}

/** A tab with two conversations kept, A and B. */
function tab(drawer = new Slow()) {
  for (const id of drawer.kept.size > 0 ? [] : ["A", "B"]) {
    drawer.kept.set(id, { id, title: null, turns: [turn(`In ${id}`)], at: 1, revision: 1 });
  }
  let turns: Turn[] = [];
  const state = { busy: false, editing: false, elsewhere: false };
  const shown: Running[] = [];
  const records = new Records(
    {
      turns: () => turns,
      busy: () => state.busy,
      editing: () => state.editing,
      elsewhere: () => state.elsewhere,
      show: (given, running) => {
        turns = given;
        shown.push(running);
        state.elsewhere = running === "elsewhere" && runs(given);
      },
    },
    drawer,
  );
  return {
    drawer,
    records,
    state,
    shown,
    texts: () => turns.map(({ text }) => text),
    reply: () => turns.at(-1),
    fresh: () => {
      turns = [];
      records.fresh();
    },
    think: (thoughts: string) => {
      const last = turns.at(-1);
      if (last?.role === "assistant") last.thoughts += thoughts;
      else turns = [newTurn("user", "Hi"), newTurn("assistant", "", { thoughts })];
      records.now();
    },
    say: (text: string) => {
      turns = [...turns, newTurn("user", text)];
      records.now();
    },
  };
}

const running = turn("He", { role: "assistant", state: "running", place: { id: "r", seq: 1 } });
const over = turn("Hello", { role: "assistant" });
const keptAs = (turns: KeptTurn[], revision: number): Kept => ({ id: "A", title: null, turns, at: 2, revision });

/** A tab that a reply in A comes to, and another one that has opened A. */
async function pair() {
  const one = tab();
  one.drawer.kept.set("A", keptAs([turn("In A"), running], 1));
  one.state.busy = true;
  one.records.shelf.take(keptAs([], 1));
  const two = tab(one.drawer);
  void two.records.open("A");
  await two.drawer.answer();
  await vi.waitFor(() => expect(two.shown).toEqual(["elsewhere"]));
  return { one, two };
}

/** What a tab does that hears of no end: it looks whether the reply still comes to the other one, which it does no more. */
async function looked({ one, two }: Awaited<ReturnType<typeof pair>>) {
  vi.useFakeTimers();
  two.records.giveWay(); // starts the watch anew, by the clock of this test
  one.state.busy = false;
  await vi.advanceTimersByTimeAsync(6_000);
  vi.useRealTimers();
}

describe("Records", () => {
  it("opens a kept conversation and goes on keeping it", async () => {
    const { drawer, records, texts, say } = tab();
    void records.open("A");
    await drawer.answer();
    expect([texts(), records.shelf.id]).toEqual([["In A"], "A"]);
    say("More");
    await drawer.answer();
    expect(drawer.kept.get("A")?.turns.map(({ text }) => text)).toEqual(["In A", "More"]);
    expect(drawer.kept.size).toBe(2);
  });

  it("keeps thoughts that grow", async () => {
    const { drawer, records, think } = tab();
    think("Hm");
    think(", well");
    await drawer.answer();
    expect(drawer.kept.get(records.shelf.id)?.turns.at(-1)?.thoughts).toBe("Hm, well");
  });

  it("shows the one that was asked for last", async () => {
    const { drawer, records, texts, say } = tab();
    void records.open("A");
    void records.open("B");
    await drawer.answer();
    expect([texts(), records.shelf.id]).toEqual([["In B"], "B"]);
    say("More");
    await drawer.answer();
    expect([...drawer.kept.keys()]).toEqual(["A", "B"]);
  });

  it("leaves a new one that is begun before the kept one is there", async () => {
    const { drawer, records, texts, fresh } = tab();
    void records.open("A");
    fresh();
    const { id } = records.shelf;
    await drawer.answer();
    expect([texts(), records.shelf.id]).toEqual([[], id]);
  });

  it("keeps what was said before the kept one is there once", async () => {
    const { drawer, records, texts, say } = tab();
    void records.open("A");
    say("Faster");
    await drawer.answer();
    say("And more");
    await drawer.answer();
    expect(texts()).toEqual(["Faster", "And more"]);
    expect([...drawer.kept.keys()]).toEqual(["A", "B", records.shelf.id]);
  });

  it("does not take another tab's turns for a conversation that was left meanwhile", async () => {
    const { drawer, records, texts, fresh } = tab();
    void records.open("A");
    await drawer.answer();
    drawer.kept.set("A", { id: "A", title: null, turns: [turn("In A"), turn("There")], at: 2, revision: 2 });
    const other = new BroadcastChannel("paceline.conversations");
    other.postMessage({ id: "A", settled: true });
    await new Promise((resolve) => setTimeout(resolve, 50)); // the word is there, the turns are not
    fresh();
    await drawer.answer();
    expect(texts()).toEqual([]);
    other.close();
  });

  it("hears once the edit is left what another tab said meanwhile", async () => {
    const { drawer, records, state, texts } = tab();
    void records.open("A");
    await drawer.answer();
    state.editing = true;
    drawer.kept.set("A", keptAs([turn("In A"), turn("There")], 2));
    const other = new BroadcastChannel("paceline.conversations");
    other.postMessage({ id: "A", settled: true });
    other.postMessage({ id: "B", settled: true });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await drawer.answer();
    expect(texts()).toEqual(["In A"]);
    state.editing = false;
    records.changed();
    await drawer.answer();
    expect(texts()).toEqual(["In A", "There"]);
    other.close();
  });

  it("leaves a reply to the tab that it comes to, and shows it when it is over", async () => {
    const { one, two } = await pair();
    one.drawer.kept.set("A", keptAs([turn("In A"), over], 2));
    one.state.busy = false;
    const other = new BroadcastChannel("paceline.conversations");
    other.postMessage({ id: "A", settled: true });
    await vi.waitFor(async () => {
      await two.drawer.answer();
      expect(two.texts()).toEqual(["In A", "Hello"]);
    });
    other.close();
  });

  it("shows a reply as broken off that comes to nobody any more", async () => {
    const { one, two } = await pair();
    await looked({ one, two });
    await vi.waitFor(async () => {
      await two.drawer.answer();
      expect(two.shown).toEqual(["elsewhere", "lost"]);
    });
  });

  it("leaves an edit alone whose conversation's reply ends in another tab", async () => {
    const { one, two } = await pair();
    one.drawer.kept.set("A", keptAs([turn("In A"), over], 2));
    two.state.editing = true;
    await looked({ one, two });
    await two.drawer.answer();
    expect(two.shown).toEqual(["elsewhere"]);
  });

  it("opens the copy after a reload, where what was said became one", async () => {
    const { drawer, records, say } = tab();
    void records.open("A");
    await drawer.answer();
    drawer.kept.set("A", keptAs([turn("In A"), turn("There")], 2));
    say("Here");
    await drawer.answer();
    expect(records.shelf.id).not.toBe("A");
    expect(JSON.parse(sessionStorage.getItem("paceline.open") ?? "{}")).toEqual({ id: records.shelf.id });
  });

  it("knows after a reload the name of a reply that the store had not got yet", async () => {
    const { place: _, ...unnamed } = running;
    const { drawer, records, reply } = tab();
    drawer.kept.set("A", keptAs([turn("In A"), { ...unnamed, text: "" }], 1));
    sessionStorage.setItem("paceline.open", JSON.stringify({ id: "A", reply: "r" }));
    const navigation = [{ type: "reload" }] as unknown as PerformanceEntryList;
    vi.spyOn(performance, "getEntriesByType").mockReturnValue(navigation);
    void records.start();
    await vi.waitFor(async () => {
      await drawer.answer();
      expect(reply()?.place).toEqual({ id: "r", seq: 0 });
    });
    vi.restoreAllMocks();
  });
});
