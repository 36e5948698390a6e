import { expect, test } from "vitest";
import { messageEvent, messageItem, sessionUpdate, wellFormed } from "../../src/wire/requests";

test("what the person and the model said are items of one shape, with a name where one is known", () => {
  expect(messageItem("user", "Hi")).toEqual({
    type: "message",
    role: "user",
    content: [{ type: "input_text", text: "Hi" }],
  });
  expect(messageEvent("assistant", "Hello", "reply_1")).toEqual({
    type: "conversation.item.create",
    item: { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello" }], id: "reply_1" },
  });
});

test("a session is for text", () => {
  expect(sessionUpdate("Be brief.").session).toMatchObject({ output_modalities: ["text"], instructions: "Be brief." });
});

test("half a character is sent as a sign that something was there", () => {
  expect(wellFormed("a\ud83db\ude00 \ud83d\ude00")).toBe("a\ufffdb\ufffd \ud83d\ude00");
  expect(JSON.stringify([messageEvent("user", "\ud83d"), sessionUpdate("\ud83d")])).not.toContain("\\ud83d");
});
