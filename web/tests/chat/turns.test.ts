import { expect, it } from "vitest";
import {
  forgetSteps,
  type KeptTurn,
  keep,
  newReply,
  newTurn,
  summary,
  toStore,
  turnsFrom,
  unkeep,
} from "../../src/chat/turns";
import { Trace } from "../../src/spec/trace";
import { SETTINGS } from "./talk";

it("keeps what a turn is, and where it can be taken up", () => {
  const running = { ...newReply(SETTINGS, 0), text: "He", place: { id: "r", seq: 3 } };
  const kept = [newTurn("user", "Hi"), running].map(keep);
  expect(JSON.parse(JSON.stringify(kept))).toEqual([
    { role: "user", text: "Hi", state: "done", note: "" },
    { role: "assistant", text: "He", state: "running", note: "", place: { id: "r", seq: 3 } },
  ]);
  const [user, reply] = unkeep(kept);
  expect(user).toMatchObject({ text: "Hi", trace: null, settings: null, place: null });
  expect(reply).toMatchObject({ text: "He", place: { id: "r", seq: 3 } });
  expect(user?.key).not.toBe(reply?.key);
});

it("keeps the end of long thoughts", () => {
  const thinking = { ...newReply(SETTINGS, 0), thoughts: "Hm, well" };
  expect(unkeep([keep(thinking)])[0]?.thoughts).toBe("Hm, well");
  const kept = keep({ ...thinking, thoughts: `x${"🦆".repeat(50_000)}` }).thoughts ?? "";
  expect(kept.length).toBeLessThanOrEqual(50_000);
  expect(kept).toMatch(/^…(🦆)+$/u);
  expect(keep({ ...thinking, thoughts: kept }).thoughts).toBe(kept);
});

it("keeps what it cannot read as it is, and shows in its place that it is there", () => {
  const good = { role: "user", text: "Hi", state: "done", note: "" };
  const odd = [
    {},
    { ...good, role: "system" },
    { ...good, text: 1 },
    { ...good, state: "new" },
    { ...good, note: null },
    { ...good, thoughts: 5 },
    { ...good, place: { id: 1, seq: "a" } },
  ];
  const shown = unkeep(turnsFrom([null, 3, ...odd, good]));
  expect(shown.map(({ text }) => text)).toEqual([...odd.map(() => ""), "Hi"]);
  expect(shown[0]).toMatchObject({ state: "done", note: expect.stringContaining("newer version"), unread: {} });
  expect(toStore(shown.map(keep))).toEqual([...odd, good]);
});

it("keeps what a newer page stored with a turn", () => {
  const stored = { role: "user", text: "Hi", state: "done", note: "", pictures: ["a"] };
  expect(toStore(unkeep(turnsFrom([stored])).map(keep))).toEqual([stored]);
});

it("takes a reply that is not the last for broken off, whatever it says", () => {
  const running: KeptTurn = { role: "assistant", text: "He", state: "running", note: "", place: { id: "r", seq: 1 } };
  const [first, , last] = unkeep([running, { role: "user", text: "Hi", state: "done", note: "" }, running]);
  expect(first).toMatchObject({ state: "interrupted", note: "connection lost", place: null });
  expect(last).toMatchObject({ state: "running", place: { id: "r" } });
  expect(unkeep([{ role: "user", text: "Hi", state: "running", note: "" }])[0]?.state).toBe("interrupted");
});

it("takes nothing of a stored turn but what it knows", () => {
  const stored = { role: "user", text: "Hi", state: "done", note: "", key: 1, trace: "x", settings: 5 } as KeptTurn;
  expect(unkeep([stored, stored]).map(({ trace, settings }) => [trace, settings])).toEqual([
    [null, null],
    [null, null],
  ]);
  expect(new Set(unkeep([stored, stored]).map(({ key }) => key)).size).toBe(2);
});

it("lets go of the steps of older replies, but for those that are looked at", () => {
  const turns = Array.from({ length: 20 }, (_, i) => (i % 2 ? newReply(SETTINGS, 0) : newTurn("user", "Hi")));
  forgetSteps(turns, turns[3]?.key ?? null);
  const traced = turns.flatMap(({ trace }, i) => (trace === null ? [] : [i]));
  expect(traced).toEqual([3, 5, 7, 9, 11, 13, 15, 17, 19]);
});

it("sums a reply up", () => {
  const reply = newReply({ ...SETTINGS, speculation: false, temperature: 0 }, 0);
  reply.trace?.push("a", { drafted: 0, accepted: 0, emitted: 1 }, 50);
  expect(summary(reply)).toBe("speculation off · TTFT 50.0 ms · 1.00 tokens per step · 1 token");
  expect(summary(newTurn("user", "Hi"))).toBe("");
});

it("says in a reply's sum what typing ahead and guessing brought", () => {
  const reply = newReply({ ...SETTINGS, temperature: 0 }, 0);
  reply.trace?.push("a", { drafted: 0, accepted: 0, emitted: 1, input_tokens: 48, cached_tokens: 32 }, 80);
  reply.trace?.push("b", { drafted: 9, accepted: 3, emitted: 4 }, 100);
  expect(summary(reply)).toBe(
    "speculation on · TTFT 80.0 ms · 32 of 48 prompt tokens were ready · TPOT 5.0 ms · " +
      "2.50 tokens per step: 2 steps instead of 5 · 5 tokens",
  );
  const resumed = newReply({ ...SETTINGS, temperature: 0 }, 0);
  resumed.trace = new Trace(null);
  resumed.trace.push("b", { drafted: 9, accepted: 3, emitted: 4 }, 100);
  expect(summary(resumed)).toBe("speculation on · 4.00 tokens per step · 4 tokens");
});
