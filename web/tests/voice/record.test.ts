import { describe, expect, it } from "vitest";
import { Conversation } from "../../src/voice/record";

function talk(): Conversation {
  const conversation = new Conversation();
  conversation.said("How far is the moon?");
  conversation.named("user_1");
  conversation.answered({ itemId: "reply_1", text: "It is far." });
  return conversation;
}

const told = ({ lines }: Conversation) => lines.map(({ id, text, cut }) => [id, text, cut]);

describe("Conversation", () => {
  it("gives a new session all of it again, under the same ids", () => {
    const conversation = talk();
    conversation.said("And the sun?");
    expect(conversation.putBack().map(({ type }) => type)).toEqual(Array(3).fill("conversation.item.create"));
    expect(conversation.putBack().map(({ item }) => item)).toEqual([
      {
        type: "message",
        role: "user",
        content: [{ type: "input_text", text: "How far is the moon?" }],
        id: "user_1",
      },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "It is far." }],
        id: "reply_1",
      },
      { type: "message", role: "user", content: [{ type: "input_text", text: "And the sun?" }] },
    ]);
  });

  it("keeps the first name of a line, and names nobody's but the person's", () => {
    const conversation = talk();
    conversation.named("user_2"); // the newest line is the reply
    expect(told(conversation)[1]).toEqual(["reply_1", "It is far.", false]);
    conversation.said("And the sun?");
    conversation.named(undefined);
    conversation.named("user_3");
    conversation.named("user_4");
    expect(told(conversation)[2]).toEqual(["user_3", "And the sun?", false]);
  });

  it("has no line for a reply without text", () => {
    const conversation = talk();
    conversation.answered({ itemId: "reply_2", text: "" });
    expect(conversation.lines).toHaveLength(2);
  });

  it("takes words back only where nothing answered them", () => {
    const conversation = talk();
    expect(conversation.takeBack()).toBe("");
    conversation.said("And the sun?");
    expect(conversation.takeBack()).toBe("And the sun?");
    expect(conversation.lines).toHaveLength(2);
    expect(new Conversation().takeBack()).toBe("");
  });

  it("cuts the newest reply where the person stopped hearing it", () => {
    const conversation = talk();
    conversation.cut("It is");
    expect(told(conversation)[1]).toEqual(["reply_1", "It is", true]);
    conversation.cut("");
    expect(conversation.lines).toHaveLength(1);
    conversation.cut("anything"); // the newest line is the person's
    expect(told(conversation)).toEqual([["user_1", "How far is the moon?", false]]);
  });
});
