// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, it, vi } from "vitest";
import { Parts } from "../../src/chat/parts";
import { Room } from "../../src/chat/room";
import { type TurnActions, TurnView } from "../../src/chat/turn";
import { newTurn } from "../../src/chat/turns";
import { Server } from "../../src/wire/server";
import { VALUES } from "./talk";

afterEach(() => vi.restoreAllMocks());

it("mounts a long conversation from its end, and compares nothing that stands there already", async () => {
  const room = new Room(new Server("http://localhost/"), signal(VALUES));
  room.conversation.turns = Array.from({ length: 100 }, (_, i) => newTurn("user", `Turn ${i}`));
  const compared = vi.spyOn(TurnView.prototype, "shouldComponentUpdate");
  const root = document.body.appendChild(document.createElement("div"));
  const texts = () => [...root.querySelectorAll(".turn .text")].map(({ textContent }) => textContent);
  const parts = <Parts room={room} actions={{} as TurnActions} />;
  act(() => render(parts, root));
  expect(texts()[0]).toBe("Turn 84");
  expect(texts().at(-1)).toBe("Turn 99");
  await vi.waitFor(() => expect(texts().length).toBe(100));
  expect(texts()[0]).toBe("Turn 0");
  expect(compared).not.toHaveBeenCalled();

  act(() => {
    room.conversation.turns.push(newTurn("user", "More"));
    room.shape.value += 1;
  });
  expect(texts().at(-1)).toBe("More");
  act(() => render(null, root));
});
