// @vitest-environment jsdom
import { beforeEach, expect, test } from "vitest";
import { keySignal } from "../../src/settings/key";

beforeEach(() => sessionStorage.clear());

test("a key is remembered for the tab alone", () => {
  expect(keySignal().value).toBe("");
  keySignal().value = "k-1";
  expect(keySignal().value).toBe("k-1");
  expect(localStorage.getItem("paceline.key")).toBeNull();
});

test("what is no key is none", () => {
  sessionStorage.setItem("paceline.key", '{"key":7}');
  expect(keySignal().value).toBe("");
});
