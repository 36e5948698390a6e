// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { Panel } from "../../src/chat/panel";
import { Room } from "../../src/chat/room";
import { DEFAULTS } from "../../src/settings/store";
import type { Theme } from "../../src/settings/theme";
import { Server } from "../../src/wire/server";
import { VALUES } from "./talk";

/** The panel over these values. */
function opened(values = VALUES) {
  const settings = signal(values);
  const server = new Server("http://localhost/");
  const room = new Room(server, settings);
  const root = document.body.appendChild(document.createElement("div"));
  const props = { room, server, settings, theme: signal<Theme>("system"), wanted: signal(false) };
  act(() => render(<Panel {...props} apiKey="" done={() => {}} />, root));
  const field = (id: string) => root.querySelector<HTMLInputElement>(`#${id}`) as HTMLInputElement;
  return { room, settings, root, field };
}

test("all settings go back to the defaults, and come back", () => {
  const mine = { ...VALUES, temperature: "1.5", instructions: "Be brief.", speculation: false };
  const { settings, root, field } = opened(mine);
  const reset = root.querySelector("#reset") as HTMLButtonElement;
  act(() => reset.click());
  expect(settings.value).toEqual(DEFAULTS);
  act(() => reset.click());
  expect(settings.value).toEqual(mine);
  act(() => reset.click());
  act(() => {
    field("seed").value = "7";
    field("seed").dispatchEvent(new Event("input", { bubbles: true }));
  });
  expect([reset.textContent, settings.value]).toEqual(["Reset all to the defaults", { ...DEFAULTS, seed: "7" }]);
  act(() => render(null, root));
});

test("what is wrong is told beside its field, wherever that is", () => {
  const { room, root, field } = opened({ ...VALUES, maxNodes: "99" });
  act(() => room.ask("Hi"));
  expect(root.querySelector("#max-nodes-problem")?.textContent).toMatch(/largest tree must be a whole number from 1/);
  expect([root.querySelector("details")?.open, document.activeElement]).toEqual([true, field("max-nodes")]);
  act(() => render(null, root));
});

test("the key has the focus each time it is asked for, and only then", () => {
  const settings = signal(VALUES);
  const server = new Server("http://localhost/");
  const room = new Room(server, settings);
  const root = document.body.appendChild(document.createElement("div"));
  const wanted = signal(false);
  const theme = signal<Theme>("system");
  const panel = <Panel {...{ room, server, settings, theme, wanted }} apiKey="" done={() => {}} />;
  const focused = () => document.activeElement?.id;
  act(() => render(panel, root));
  expect(focused()).toBe("");
  act(() => render(null, root));

  wanted.value = true; // before the panel is open
  act(() => render(panel, root));
  expect([focused(), wanted.value]).toEqual(["key", false]);
  document.getElementById("seed")?.focus();
  act(() => {
    wanted.value = true;
  });
  expect(focused()).toBe("key");
  act(() => render(null, root));
  act(() => render(panel, root));
  expect(focused()).toBe("");
});
