// @vitest-environment jsdom

import { beforeEach, expect, test } from "vitest";
import { remembered } from "../../src/settings/store";

beforeEach(() => localStorage.clear());

test("what was changed is there at the next visit", () => {
  const form = remembered("form", { seed: "1", fast: true });
  form.value = { seed: "7", fast: false };
  expect(remembered("form", { seed: "1", fast: true }).value).toEqual({ seed: "7", fast: false });
  expect(remembered("other", { seed: "1" }).value).toEqual({ seed: "1" });
});

test("a kept value of another type or name is not taken", () => {
  localStorage.setItem("paceline.form", JSON.stringify({ seed: 7, old: "x" }));
  expect(remembered("form", { seed: "1" }).value).toEqual({ seed: "1" });
});
