import { expect, test } from "vitest";
import { recall, remember } from "../../src/settings/storage";

function memory(kept = new Map<string, string>()): () => Storage {
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, text: string) => void kept.set(name, text),
  };
  return () => storage as Storage;
}

const forbidden = () => {
  throw new Error("denied");
};

test("values survive a visit, each under its name", () => {
  const storage = memory();
  expect(recall(storage, "a")).toEqual({});
  remember(storage, "a", { seed: "5" });
  remember(storage, "b", { seed: "6" });
  expect(recall(storage, "a")).toEqual({ seed: "5" });
});

test("storage that fails, or holds something else, is no failure", () => {
  remember(forbidden, "a", { seed: "5" });
  expect(recall(forbidden, "a")).toEqual({});
  expect(recall(memory(new Map([["paceline.a", "not json"]])), "a")).toEqual({});
  expect(recall(memory(new Map([["paceline.a", "3"]])), "a")).toEqual({});
});
