// @vitest-environment jsdom
import { expect, test } from "vitest";
import { routeSignal } from "../../src/shell/route";

test("the address says which view is shown, and the title says it too", () => {
  document.title = "Paceline";
  location.hash = "#/race";
  const route = routeSignal({ chat: "Chat", race: "Race" }, "chat");
  expect([route.value, document.title]).toEqual(["race", "Race · Paceline"]);
  for (const hash of ["#/nowhere", ""]) {
    location.hash = hash;
    dispatchEvent(new Event("hashchange"));
    expect([route.value, document.title]).toEqual(["chat", "Chat · Paceline"]);
  }
});
