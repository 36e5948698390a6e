// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { focusLost, NARROW, type Steps, useSteps, WIDE } from "../../src/chat/sides";

type Room = Steps["room"];

/** Drawn on a screen that changes when the test says so. */
function drawn(first: Room) {
  const queries = new Map<string, EventTarget & { matches: boolean }>();
  const holds = (query: string, room: Room) => (query === WIDE ? "wide" : query === NARROW ? "narrow" : "no") === room;
  vi.stubGlobal("matchMedia", (query: string) => {
    const list = Object.assign(new EventTarget(), { matches: holds(query, first) });
    queries.set(query, list);
    return list;
  });
  let steps: Steps | null = null;
  const View = () => {
    steps = useSteps();
    return null;
  };
  act(() => render(<View />, document.createElement("div")));
  const now = () => steps as unknown as Steps;
  const become = (room: Room) =>
    act(() => {
      for (const [query, list] of queries) {
        list.matches = holds(query, room);
        list.dispatchEvent(new Event("change"));
      }
    });
  return { now, become };
}

test("steps that opened by themselves close where there is no room, and not before", () => {
  const { now, become } = drawn("wide");
  expect(now()).toMatchObject({ open: true, room: "wide" });
  become("");
  expect(now().open).toBe(true);
  become("narrow");
  expect(now().open).toBe(false);
  become("");
  expect(now().open).toBe(false);
  become("wide");
  expect(now().open).toBe(true);
});

test("what the person chose stays", () => {
  const { now, become } = drawn("narrow");
  expect(now().open).toBe(false);
  act(() => now().toggle());
  expect(now().open).toBe(true);
  become("wide");
  act(() => now().toggle());
  expect(now().open).toBe(false);
  become("narrow");
  act(() => now().show());
  expect(now().open).toBe(true);
});

test("the focus is lost where nothing has it, or what cannot be seen", () => {
  expect(focusLost()).toBe(true);
  const field = document.body.appendChild(document.createElement("input"));
  field.checkVisibility = () => true; // jsdom draws nothing
  field.focus();
  expect(focusLost()).toBe(false);
  field.checkVisibility = () => false;
  expect(focusLost()).toBe(true);
});
