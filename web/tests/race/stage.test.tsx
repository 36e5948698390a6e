// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { Room } from "../../src/race/room";
import { Stage } from "../../src/race/stage";
import type { LinkOptions } from "../../src/wire/link";
import { Server } from "../../src/wire/server";
import { PLAN } from "./fixtures";

test("a wait for the server is seen with each try and said once; what ends a race is said", () => {
  const root = document.createElement("div");
  Element.prototype.scrollIntoView = () => {};
  let told: LinkOptions["onState"] = () => {};
  const link = { renew: () => {}, close: () => {}, expect: () => {} };
  const server = Object.assign(new Server("http://127.0.0.1:9/"), {
    link: (handlers: Pick<LinkOptions, "onState">) => {
      told = handlers.onState;
      return link;
    },
  });
  const room = new Room(server as unknown as Server);
  const texts = (selector: string) => [...root.querySelectorAll(selector)].map(({ textContent }) => textContent);
  const hear = (...news: Parameters<LinkOptions["onState"]>) =>
    act(() => {
      told(...news);
      room.frames.now();
    });
  act(() => render(<Stage room={room} model={signal("")} />, root));
  act(() => room.start(PLAN));
  hear("waiting", "Away; trying again in a moment.");
  hear("connecting", "");
  hear("waiting", "Away; trying again in 2 seconds.");
  expect(texts(".bar")).toEqual(["Away; trying again in 2 seconds."]);
  expect(texts("[role=status]").join("")).toBe("Away; trying again in a moment.");
  hear("locked", "Enter a key.");
  expect(texts("#race-verdict .bar")[0]).toMatch(/^Enter a key\./);
  act(() => render(null, root));
});
