import { expect, it } from "vitest";
import { isEntry, keptFrom, shown } from "../../src/chat/cabinet";

it("lists nothing that is no line of the list", () => {
  const entry = { id: "a", title: "A", at: 5 };
  const odd = [null, 3, "x", {}, { ...entry, title: {} }, { ...entry, at: "now" }];
  expect([...odd, entry].filter(isEntry)).toEqual([entry]);
  expect(shown(entry)).toEqual(entry);
  expect(shown({ id: "a", title: "\u200b", at: Number.NaN })).toEqual({ id: "a", title: "Conversation", at: 0 });
});

it("takes of a stored conversation what it can read", () => {
  const turn = { role: "user", text: "Hi", state: "done", note: "" };
  const kept = { id: "a", title: "T", turns: [turn], at: 5, revision: 2, colour: "red" };
  expect(keptFrom("a", kept)).toEqual(kept);
  expect(keptFrom("a", { ...kept, title: {}, turns: [null, turn], revision: undefined })).toEqual({
    ...kept,
    title: null,
    revision: 0,
  });
  for (const odd of [Number.NaN, Infinity, "x"]) {
    expect(keptFrom("a", { ...kept, at: odd, revision: odd })).toMatchObject({ at: 0, revision: 0 });
  }
  for (const odd of [undefined, null, 5, { turns: "x" }]) expect(keptFrom("a", odd)).toBeUndefined();
});
