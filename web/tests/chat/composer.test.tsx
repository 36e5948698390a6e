// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { createRef, render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { Composer } from "../../src/chat/composer";
import { Room } from "../../src/chat/room";
import { Server } from "../../src/wire/server";
import { VALUES } from "./talk";

test("Enter during a reply says why nothing is sent, until the reply is over", () => {
  const room = new Room(new Server("http://localhost/"), signal(VALUES));
  const root = document.body.appendChild(document.createElement("div"));
  const field = createRef<HTMLTextAreaElement>();
  act(() => render(<Composer room={room} field={field} editLast={() => {}} />, root));
  const told = () => root.querySelector("[role=status]")?.textContent;
  const enter = (text: string) =>
    act(() => {
      room.write(text);
      field.current?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
    });

  enter("First");
  expect([room.conversation.busy, told()]).toEqual([true, ""]);
  enter(" ");
  expect(told()).toBe("");
  enter("Second");
  expect(told()).toMatch(/still on its way: Esc or Stop ends it/);
  expect(room.draft.value).toBe("Second");
  act(() => room.stop());
  expect([room.conversation.busy, told()]).toEqual([false, ""]);
  enter("Second");
  expect([room.conversation.busy, told()]).toEqual([true, ""]);
});
