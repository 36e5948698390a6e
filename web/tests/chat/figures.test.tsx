// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { FigureStrip } from "../../src/chat/figures";
import { Room } from "../../src/chat/room";
import { newReply } from "../../src/chat/turns";
import { Server } from "../../src/wire/server";
import { SETTINGS, VALUES } from "./talk";

test("figures are there once there are some, and say when they are not the newest reply's", () => {
  const settings = signal(VALUES);
  const room = new Room(new Server("http://localhost/"), settings);
  const root = document.body.appendChild(document.createElement("div"));
  let refocused = 0;
  act(() => render(<FigureStrip {...{ room, settings }} refocus={() => (refocused += 1)} />, root));
  const told = () => [root.querySelector("dl") !== null, root.querySelector(".chat-whose span")?.textContent];
  expect(told()).toEqual([false, undefined]);
  expect(root.querySelector("#speculation")).not.toBeNull();

  const replies = [newReply(SETTINGS, 0), newReply(SETTINGS, 0)] as const;
  act(() => {
    room.conversation.turns = [...replies];
    room.shape.value += 1;
  });
  expect(told()).toEqual([true, undefined]);
  act(() => {
    room.looked.value = replies[0].key;
  });
  expect(told()).toEqual([true, "Of an earlier reply"]);
  act(() => root.querySelector("button")?.click());
  expect([told(), room.looked.value, refocused]).toEqual([[true, undefined], null, 1]);
});
