import { expect, it } from "vitest";
import { sameAgain } from "../../src/chat/again";
import { newReply, newTurn, type Turn } from "../../src/chat/turns";
import type { Settings } from "../../src/settings/parse";
import { SETTINGS, settled } from "./talk";

function asked(settings: Partial<Settings> = {}, state: Turn["state"] = "done"): Turn {
  return { ...newReply({ ...SETTINGS, ...settings }, 0), state };
}

it("says that the same seed makes the same reply, with speculation or without", () => {
  expect(sameAgain(asked(), SETTINGS)).toMatch(/same seed.*; empty the seed/);
  expect(sameAgain(asked({ speculation: false }), SETTINGS)).toMatch(/same seed/);
  expect(sameAgain(asked({ seed: 8 }), SETTINGS)).toBe("");
  expect(sameAgain(asked({ topP: 0.5 }), SETTINGS)).toBe("");
});

it("says that temperature 0 makes the same reply with any seed", () => {
  expect(sameAgain(asked({ temperature: 0, seed: 8 }), { ...SETTINGS, temperature: 0 })).toMatch(
    /raise the temperature/,
  );
  expect(sameAgain(asked({ seed: 8 }), { ...SETTINGS, temperature: 0 })).toBe("");
});

it("says nothing of a reply that is not whole, or of which nothing is known", () => {
  expect(sameAgain(asked({}, "failed"), SETTINGS)).toBe("");
  expect(sameAgain(asked({}, "interrupted"), SETTINGS)).toBe("");
  expect(sameAgain(newTurn("assistant", "Hi"), SETTINGS)).toBe("");
  expect(sameAgain(null, SETTINGS)).toBe("");
});

it("is told when the reply is replaced", () => {
  const conversation = settled();
  conversation.retry(SETTINGS, 4);
  expect(conversation.notice).toEqual({
    text: expect.stringMatching(/^The reply is replaced\. With the same seed it will be the same one; /),
    action: "undo",
  });
});
