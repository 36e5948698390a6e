// @vitest-environment jsdom
import { expect, it } from "vitest";
import { themeSignal } from "../../src/settings/theme";

it("is the system's until one is chosen, which is remembered", () => {
  const root = document.createElement("html");
  const theme = themeSignal(root);
  expect([theme.value, root.dataset.theme]).toEqual(["system", undefined]);
  theme.value = "dark";
  expect(root.dataset.theme).toBe("dark");
  const next = document.createElement("html");
  expect([themeSignal(next).value, next.dataset.theme]).toEqual(["dark", "dark"]);
  theme.value = "system";
  expect(root.dataset.theme).toBeUndefined();
});
