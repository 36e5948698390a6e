import { describe, expect, it } from "vitest";
import { Typing } from "../../src/chat/typing";
import { bodies, done, events, fault, items, linked, replying, SETTINGS, types } from "./talk";

const append = (text: string) => ({ type: "input_text.append", text });
const CLEAR = { type: "input_text.clear" };
const COMMIT = { type: "input_text.commit" };

describe("Typing", () => {
  it("appends what goes on and begins anew where the text changed", () => {
    const typing = new Typing();
    expect(typing.follow("Hel")).toEqual([append("Hel")]);
    expect(typing.follow("Hel")).toEqual([]);
    expect(typing.follow("Hello")).toEqual([append("lo")]);
    expect(typing.follow("Help")).toEqual([CLEAR, append("Help")]);
    expect(typing.follow(" ")).toEqual([CLEAR]);
    expect(typing.follow("")).toEqual([]);
  });

  it("commits only what is exactly there", () => {
    const typing = new Typing();
    typing.follow("Hello");
    expect(typing.commit("Hello!")).toBeNull();
    expect(typing.drop()).toEqual([CLEAR]);
    expect(typing.drop()).toEqual([]);
    typing.follow("Hello!");
    expect(typing.commit("Hello!")).toEqual(COMMIT);
    expect(typing.drop()).toEqual([]);
    expect(typing.follow("So")).toEqual([append("So")]);
  });

  it("clears what it cannot know", () => {
    const typing = new Typing();
    typing.follow("Hel");
    typing.doubt();
    expect(typing.commit("Hel")).toBeNull();
    expect(typing.follow("Hello")).toEqual([CLEAR, append("Hello")]);
  });

  it("does not send pasted books twice", () => {
    const typing = new Typing();
    typing.follow("a");
    expect(typing.follow("a".repeat(100_001))).toEqual([CLEAR]);
  });

  it("is quiet after a refusal, until the turn", () => {
    const typing = new Typing();
    typing.follow("Hel");
    typing.refuse();
    expect(typing.follow("Hello")).toEqual([]);
    expect(typing.drop()).toEqual([CLEAR]);
    expect(typing.follow("Next")).toEqual([append("Next")]);
  });
});

describe("a conversation that is typed ahead", () => {
  it("has its system prompt first, and commits", () => {
    const conversation = linked();
    expect(bodies(conversation.type("Hel", "Rhyme."))).toEqual([
      expect.objectContaining({ type: "session.update" }),
      append("Hel"),
    ]);
    expect(bodies(conversation.type("Hello", "Rhyme."))).toEqual([append("lo")]);
    const said = conversation.say("Hello", { ...SETTINGS, instructions: "Rhyme." }, 0);
    expect(types(said)).toEqual(["input_text.commit", "response.create"]);
    expect(conversation.turns[0]?.text).toBe("Hello");
  });

  it("clears and sends all where the text differs", () => {
    const conversation = linked();
    conversation.type("Hel", "");
    const said = conversation.say("Hello", SETTINGS, 0);
    expect(types(said)).toEqual(["input_text.clear", "conversation.item.create", "response.create"]);
    expect(items(said)).toEqual([["user", "Hello"]]);
  });

  it("goes on during a reply", () => {
    const conversation = replying();
    expect(bodies(conversation.type("And", ""))).toEqual([append("And")]);
    conversation.receive(done("completed"), 5);
    expect(types(conversation.say("And", SETTINGS, 6))).toEqual(["input_text.commit", "response.create"]);
  });

  it("tells how much is computed, for this session", () => {
    const conversation = linked();
    conversation.type("Hel", "");
    conversation.receive({ type: "x_input_text.prefilled", tokens: 318, cached_tokens: 304 }, 1);
    expect(conversation.prefilled).toEqual({ tokens: 318, ready: 304 });
    conversation.type(" ", "");
    expect(conversation.prefilled).toBeNull();
    conversation.receive({ type: "input_text.cleared" }, 2);
    conversation.type("Hello", "");
    conversation.receive({ type: "x_input_text.prefilled", tokens: 320, cached_tokens: 320 }, 2);
    expect(conversation.prefilled).toEqual({ tokens: 320, ready: 320 });
    conversation.say("Hello", SETTINGS, 3);
    expect(conversation.prefilled).toBeNull();
  });

  it("does not take what is told of a text that was sent or taken back meanwhile", () => {
    const late = { type: "x_input_text.prefilled", tokens: 20, cached_tokens: 18 };
    const conversation = linked();
    conversation.type("Hel", "");
    conversation.type("Ha", "");
    conversation.receive(late, 1);
    expect(conversation.prefilled).toBeNull();
    conversation.receive({ type: "input_text.cleared" }, 2);
    conversation.receive(late, 3);
    expect(conversation.prefilled).not.toBeNull();
    conversation.say("Ha", SETTINGS, 4);
    conversation.receive(late, 5);
    expect(conversation.prefilled).toBeNull();
    conversation.type("Next", "");
    conversation.receive(late, 6);
    expect(conversation.prefilled).toBeNull();
    conversation.receive({ type: "input_text.committed" }, 7);
    conversation.receive(late, 8);
    expect(conversation.prefilled).not.toBeNull();
  });

  it("hears of its text again after a drop, whatever was not answered before", () => {
    const conversation = linked();
    conversation.type("Hel", "");
    conversation.type("Ha", "");
    conversation.down();
    conversation.receive({ type: "session.created" }, 1);
    conversation.type("Ha", "");
    conversation.receive({ type: "x_input_text.prefilled", tokens: 20, cached_tokens: 18 }, 2);
    expect(conversation.prefilled).toEqual({ tokens: 20, ready: 18 });
  });

  it("withdraws a turn of which a part was refused, whenever that is told", () => {
    const conversation = linked();
    conversation.type("Hel", "");
    const refused = events(conversation.type("Hello", ""))[0]?.event_id;
    conversation.say("Hello", SETTINGS, 0);
    expect(conversation.receive(fault("Full.", refused), 1)[0]).toEqual({ do: "restore", text: "Hello" });
    expect(conversation.turns).toEqual([]);
  });

  it("says nothing of a refusal while the words are the composer's, and sends them whole", () => {
    const conversation = linked();
    const [, refused] = events(conversation.type("Hel", ""));
    expect(conversation.receive(fault("Full.", refused?.event_id), 1)).toEqual([]);
    expect(conversation.notice).toBeNull();
    const said = conversation.say("Hel", SETTINGS, 2);
    expect(types(said)).toEqual(["input_text.clear", "conversation.item.create", "session.update", "response.create"]);
  });

  it("does not trust what the session holds after a drop", () => {
    const conversation = replying();
    conversation.type("And", "");
    conversation.down();
    expect(conversation.type("And so", "")).toEqual([]);
    conversation.receive({ type: "session.created" }, 3);
    expect(bodies(conversation.type("And so", ""))).toEqual([
      expect.objectContaining({ type: "session.update" }),
      CLEAR,
      append("And so"),
    ]);
  });
});

it("sends a character whole that came in halves", () => {
  const conversation = linked();
  expect(bodies(conversation.type("\ud83d", "")).at(-1)).toEqual(append("\ufffd"));
  expect(bodies(conversation.type("\ud83d\ude00", ""))).toEqual([CLEAR, append("\ud83d\ude00")]);
  expect(types(conversation.say("\ud83d\ude00", SETTINGS, 0))[0]).toBe("input_text.commit");
});
