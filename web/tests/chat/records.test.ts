// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from "vitest";
import { Records } from "../../src/chat/records";
import { newTurn, type Turn } from "../../src/chat/turns";
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
function tab() {
  const drawer = new Slow();
  for (const id of ["A", "B"]) {
    drawer.kept.set(id, { id, title: null, turns: [turn(`In ${id}`)], at: 1, revision: 1 });
  }
  let turns: Turn[] = [];
  const show = (given: Turn[]) => {
    turns = given;
  };
  const records = new Records({ turns: () => turns, at: () => false, show }, drawer);
  return {
    drawer,
    records,
    texts: () => turns.map(({ text }) => text),
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
});
