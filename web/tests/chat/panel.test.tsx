// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { Panel } from "../../src/chat/panel";
import { Room } from "../../src/chat/room";
import type { Theme } from "../../src/settings/theme";
import { Server } from "../../src/wire/server";
import { VALUES } from "./talk";

test("the key has the focus each time it is asked for, and only then", () => {
  const settings = signal(VALUES);
  const room = new Room(new Server("http://localhost/"), settings);
  const root = document.body.appendChild(document.createElement("div"));
  const wanted = signal(false);
  const theme = signal<Theme>("system");
  const panel = <Panel {...{ room, settings, theme, wanted }} apiKey="" done={() => {}} />;
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
