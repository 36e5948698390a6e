// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { Stage } from "../../src/voice/stage";
import { Stage as Talk } from "./fakes";

const root = document.createElement("div");

function said({ loop }: Talk, linked: boolean): string {
  act(() => render(<Stage loop={loop} linked={linked} />, root));
  return root.querySelector("[role=status]")?.textContent ?? "";
}

test("a turn without a server waits for it, and does not pretend to be answered", () => {
  const talk = new Talk();
  talk.loop.hear("How far is the moon?");
  expect(said(talk, false)).toMatch(/^Listening.*once it can be reached/);
  talk.loop.endTurn();
  expect(said(talk, false)).toMatch(/^Waiting.*waits for the connection/);
  talk.up();
  expect(said(talk, true)).toMatch(/^Thinking.*the reply begins/);
});
