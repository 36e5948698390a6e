// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { TurnView } from "../../src/chat/turn";
import { newReply, type TurnState } from "../../src/chat/turns";
import type { Spec } from "../../src/wire/events";
import { demoDeltas } from "../spec/demo";
import { SETTINGS } from "./talk";

const never = () => {
  throw new Error("nobody pressed anything");
};
const ACTIONS = { copy: never, edit: never, resend: never, retry: never, goOn: never, look: never };

/** What can be done with a reply that has ended, with these counts beside its text. forgotten: its steps are. */
function offered(spec: Spec, forgotten = false, state: TurnState = "done", text = "Hi"): (string | undefined)[] {
  const turn = newReply(SETTINGS, 0);
  turn.text = text;
  turn.trace?.push("Hi", spec, 1);
  turn.trace?.close();
  turn.state = state;
  const root = document.createElement("div");
  const traced = !forgotten && (turn.trace?.steps.length ?? 0) > 0;
  const rest = { last: true, busy: false, editing: false, looked: false, traced, tick: signal(0), actions: ACTIONS };
  act(() => render(<TurnView turn={turn} state={turn.state} note="" {...rest} />, root));
  return [...root.querySelectorAll("button")].map(({ dataset }) => dataset.action);
}

test("steps are offered where there are some", () => {
  for (const { spec } of demoDeltas(1)) {
    expect(offered(spec)).toEqual(["copy", "again", "look"]);
    expect(offered(spec, true)).toEqual(["copy", "again"]);
  }
  expect(offered({ drafted: 0, accepted: 0, emitted: 1 })).toEqual(["copy", "again"]);
});

test("a reply that ended too soon can go on", () => {
  const steps = { drafted: 0, accepted: 0, emitted: 1 };
  for (const state of ["cut", "stopped", "interrupted"] as const) {
    expect(offered(steps, true, state)).toEqual(["copy", "again", "go-on"]);
  }
  expect(offered(steps, true, "failed")).toEqual(["copy", "again"]);
  expect(offered(steps, true, "stopped", "")).toEqual(["copy", "again"]); // there is no beginning of it
});
