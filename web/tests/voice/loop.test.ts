import { describe, expect, it } from "vitest";
import { Stage } from "./fakes";

const REPLY = "It is far. Very far.";

const truncate = (end: number) => ({
  type: "conversation.item.truncate",
  item_id: "reply_1",
  content_index: 0,
  x_text_end: end,
});

describe("a turn", () => {
  it("goes from words to a spoken reply and back", () => {
    const stage = new Stage().up();
    expect(stage.loop.state).toBe("idle");
    stage.loop.attend(true);
    expect(stage.loop.state).toBe("listening");
    stage.loop.hear("How far");
    stage.loop.hear("How far is the moon?");
    stage.loop.endTurn();
    expect(stage.take()).toEqual([
      { type: "input_text.append", text: "How far" },
      { type: "input_text.append", text: " is the moon?" },
      { type: "input_text.commit" },
      { type: "response.create", response: { temperature: 0.2, voice: { clauses: true } } },
    ]);
    expect(stage.loop.state).toBe("thinking");
    stage.say(REPLY.slice(0, 10));
    expect(stage.loop.state).toBe("thinking"); // text without a clause has no sound
    stage.server("x_response.clause", { end: 10 });
    expect(stage.loop.state).toBe("speaking");
    stage.say(REPLY.slice(10), 20).done();
    expect(stage.voice.said).toEqual(["It is far.", " Very far."]);
    stage.voice.finish();
    expect(stage.loop.state).toBe("speaking");
    stage.voice.finish();
    expect(stage.loop.state).toBe("listening");
    stage.loop.attend(false);
    expect(stage.loop.state).toBe("idle");
    expect(stage.lines).toEqual(["user: How far is the moon?", `assistant: ${REPLY}`]);
    expect(stage.take()).toEqual([]);
  });

  it("waits for the rest of a reply whose clauses were all heard", () => {
    const stage = new Stage().up().ask().say("It is far.", 10);
    stage.voice.finish();
    expect(stage.loop.state).toBe("speaking");
    stage.say(" !").done();
    expect(stage.loop.state).toBe("idle");
    expect(stage.loop.reply?.heard).toBe(12); // marks alone have no sound
  });

  it("speaks what came without a clause of its own", () => {
    const stage = new Stage().up().ask().say("One. Two. Three", 9).done();
    expect(stage.voice.said).toEqual(["One. Two.", " Three"]);
  });

  it("has no use for silence", () => {
    const stage = new Stage().up();
    stage.loop.hear("  ");
    stage.loop.endTurn();
    expect(stage.take()).toEqual([]);
    expect(stage.loop.state).toBe("idle");
  });

  it("keeps its times", () => {
    const stage = new Stage().up();
    stage.loop.hear("How far is");
    stage.clock.pass(100);
    stage.server("x_input_text.prefilled", { tokens: 44, stable_tokens: 41, text_end: 10 });
    stage.clock.pass(400);
    stage.loop.endTurn();
    stage.clock.pass(63);
    stage.say("It is far.");
    stage.clock.pass(7);
    stage.server("x_response.clause", { end: 10 });
    stage.clock.pass(30);
    stage.voice.word(0);
    stage.clock.pass(100);
    stage.loop.hear("stop");
    stage.clock.pass(12);
    stage.done("cancelled", { usage: { input_tokens: 44, input_token_details: { cached_tokens: 32 } } });
    expect(stage.loop.turns).toEqual([
      expect.objectContaining({
        begun: 0,
        heard: 0,
        appends: [0],
        ready: [{ at: 100, tokens: 44, stable: 41 }],
        ended: 500,
        asked: 500,
        firstText: 563,
        firstClause: 570,
        firstSound: 600,
        brokeIn: 700,
        cancelled: 712,
        prompt: 44,
        cached: 32,
        cut: { length: 10, heard: 0 },
      }),
    ]);
  });

  it("says what is wrong with a setting and keeps the words", () => {
    const stage = new Stage().up();
    stage.asking = "The temperature must be a number from 0 to 2; change it or leave it empty.";
    stage.loop.hear("Hello");
    stage.loop.endTurn();
    expect(stage.types()).toEqual(["input_text.append"]);
    expect(stage.loop.notice).toBe(stage.asking);
    expect(stage.loop.state).toBe("listening");
    stage.asking = { instructions: "", body: {} };
    stage.loop.hear("there");
    stage.loop.endTurn();
    expect(stage.take()).toEqual([
      { type: "input_text.append", text: " there" },
      { type: "session.update", session: { type: "realtime", output_modalities: ["text"], instructions: "" } },
      { type: "input_text.commit" },
      { type: "response.create", response: { voice: { clauses: true } } },
    ]);
  });
});

describe("breaking in", () => {
  it("cuts the reply to the words that were heard, once the server has ended it", () => {
    const stage = new Stage().up().ask().say(REPLY, 10, 20);
    stage.take();
    stage.voice.finish();
    stage.voice.word(6);
    stage.loop.hear("No,");
    expect(stage.loop.state).toBe("interrupted");
    expect(stage.voice.queue).toEqual([]);
    stage.loop.hear("No, the sun");
    expect(stage.take()).toEqual([
      { type: "response.cancel" },
      { type: "input_text.append", text: "No," },
      { type: "input_text.append", text: " the sun" },
    ]);
    stage.say(" And more.", 30); // what had been made is sent before the end, and is not spoken
    expect(stage.voice.queue).toEqual([]);
    stage.done("cancelled");
    expect(stage.take()).toEqual([truncate(15)]);
    expect(stage.loop.state).toBe("listening");
    expect(stage.lines).toEqual(["user: How far is the moon?", "assistant: It is far. Very |"]);
    stage.loop.endTurn();
    expect(stage.types()).toEqual(["input_text.commit", "response.create"]);
  });

  it("counts code points, of which a pair of surrogates is one", () => {
    const stage = new Stage().up().ask().say("🌙🌙 far 🚀🚀 away. Yes.", 14, 19);
    stage.take();
    stage.voice.word(10); // before the last word of the first clause
    stage.loop.hear("stop");
    stage.done("cancelled");
    expect(stage.take()).toContainEqual(truncate(9));
    expect(stage.loop.conversation.lines.at(-1)?.text).toBe("🌙🌙 far 🚀🚀");
  });

  it.each([
    ["before the first text", ""],
    ["before the first clause", "It"],
  ])("%s leaves nothing of the reply", (_, text) => {
    const stage = new Stage().up().ask();
    stage.take();
    if (text) stage.say(text);
    stage.loop.hear("wait");
    expect(stage.types()).toEqual(["response.cancel", "input_text.append"]);
    if (!text) stage.server("response.output_item.added", { item: { id: "reply_1" } }); // empty, but an item
    stage.done("cancelled");
    expect(stage.take()).toEqual([{ type: "conversation.item.delete", item_id: "reply_1" }]);
    expect(stage.lines).toEqual(["user: How far is the moon?"]);
    expect(stage.loop.state).toBe("listening");
  });

  it("between clauses keeps the first one", () => {
    const stage = new Stage().up().ask().say("It is far. Ver", 10);
    stage.voice.finish();
    stage.loop.interrupt();
    stage.done("cancelled");
    expect(stage.take()).toContainEqual(truncate(10));
    expect(stage.loop.state).toBe("idle");
  });

  it("after the reply was made, while it is spoken, needs no cancel", () => {
    const stage = new Stage().up().ask().say(REPLY, 10, 20).done();
    stage.take();
    stage.voice.finish();
    stage.loop.hear("stop");
    expect(stage.take()).toEqual([truncate(10), { type: "input_text.append", text: "stop" }]);
    expect(stage.lines.at(-1)).toBe("assistant: It is far. |");
  });

  it("after everything was heard is an ordinary turn", () => {
    const stage = new Stage().up().ask().say(REPLY, 20).done();
    stage.voice.finish();
    stage.take();
    stage.loop.hear("Thanks");
    stage.loop.interrupt(); // nothing runs
    expect(stage.types()).toEqual(["input_text.append"]);
    expect(stage.lines.at(-1)).toBe(`assistant: ${REPLY}`);
  });

  it("bears a reply that ended by itself before the cancel arrived", () => {
    const stage = new Stage().up().ask().say(REPLY, 10, 20);
    stage.take();
    stage.voice.finish();
    stage.loop.hear("stop");
    const event_id = stage.idOf("response.cancel");
    stage.done("completed");
    stage.server("error", { error: { code: "response_cancel_not_active", message: "No such response.", event_id } });
    expect(stage.loop.notice).toBe("");
    expect(stage.take()).toContainEqual(truncate(10));
  });

  it("asks a turn that ended meanwhile as soon as the reply has ended", () => {
    const stage = new Stage().up().ask().say(REPLY, 10);
    stage.loop.hear("The sun");
    stage.loop.endTurn();
    stage.loop.endTurn();
    stage.take();
    expect(stage.loop.state).toBe("interrupted");
    stage.done("cancelled");
    expect(stage.types()).toEqual(["conversation.item.delete", "input_text.commit", "response.create"]);
    expect(stage.loop.state).toBe("thinking");
  });

  it("lets a turn that ended meanwhile go on", () => {
    const stage = new Stage().up().ask().say(REPLY, 10);
    stage.loop.hear("The sun");
    stage.loop.endTurn();
    stage.loop.hear("and Mars");
    stage.done("cancelled");
    expect(stage.loop.state).toBe("listening");
    expect(stage.loop.pending.text).toBe("The sun and Mars");
  });

  it("leaves a session that does not confirm the end", () => {
    const stage = new Stage().up().ask().say(REPLY, 10);
    stage.voice.finish();
    stage.loop.hear("The sun");
    stage.clock.pass(5_000);
    expect(stage.renewed).toBe(1);
    expect(stage.loop.state).toBe("listening");
    expect(stage.loop.notice).toMatch(/did not confirm/);
    stage.take();
    stage.server("session.created");
    expect(stage.types()).toEqual([
      "session.update",
      "conversation.item.create",
      "conversation.item.create",
      "input_text.append",
    ]);
    expect(stage.lines.at(-1)).toBe("assistant: It is far. |");
  });

  it("does not wait longer than for the end", () => {
    const stage = new Stage().up().ask().say(REPLY, 10);
    stage.loop.interrupt();
    stage.done("cancelled");
    stage.clock.pass(10_000);
    expect(stage.renewed).toBe(0);
  });
});

describe("a reply", () => {
  it("that fails without a word gives the words back", () => {
    const stage = new Stage().up().ask("Hello");
    stage.done("failed", { status_details: { error: { message: "The engine failed." } } });
    expect(stage.loop.notice).toBe("The engine failed.");
    expect(stage.loop.pending.text).toBe("Hello");
    expect([stage.renewed, stage.lines, stage.loop.turns]).toEqual([1, [], []]);
  });

  it("that fails later is spoken as far as it came", () => {
    const stage = new Stage().up().ask().say(REPLY, 10);
    stage.done("failed");
    expect(stage.voice.said).toEqual(["It is far.", " Very far."]);
    expect(stage.loop.notice).not.toBe("");
  });

  it("that says nothing is told", () => {
    const stage = new Stage().up().ask();
    stage.server("response.output_item.added", { item: { id: "reply_1" } });
    stage.take();
    stage.done();
    expect(stage.loop.notice).toMatch(/nothing to say/);
    expect(stage.types()).toEqual(["conversation.item.delete"]);
    expect(stage.loop.state).toBe("idle");
  });

  it("that is refused gives the words back, and a session without them", () => {
    const stage = new Stage().up();
    stage.loop.hear("Hello");
    stage.loop.endTurn();
    const error = { message: "The server is full; try again later.", event_id: stage.idOf("response.create") };
    stage.server("error", { error });
    expect(stage.loop.notice).toBe(error.message);
    expect(stage.renewed).toBe(1);
    expect(stage.loop.state).toBe("listening");
    stage.take();
    stage.server("session.created");
    expect(stage.take().at(-1)).toEqual({ type: "input_text.append", text: "Hello" });
    stage.loop.endTurn();
    expect(stage.types()).toEqual(["input_text.commit", "response.create"]);
  });

  it("goes on beside errors about other things", () => {
    const stage = new Stage().up().ask().say(REPLY, 10);
    stage.server("error", { error: { message: "The conversation is full.", event_id: "other" } });
    stage.server("error", {});
    expect(stage.loop.notice).toMatch(/without saying which/);
    expect(stage.loop.state).toBe("speaking");
    stage.loop.tell("");
    expect(stage.loop.notice).toBe("");
  });
});

describe("a lost connection", () => {
  const settings = { type: "session.update", session: expect.objectContaining({ instructions: "Be brief." }) };
  const item = (role: string, text: string, id: string) => ({
    type: "conversation.item.create",
    item: { type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }], id },
  });

  it("while the person speaks costs nothing", () => {
    const stage = new Stage().up();
    stage.loop.hear("How far");
    stage.take();
    stage.loop.down();
    stage.loop.hear("How far is it");
    expect(stage.take()).toEqual([]);
    expect(stage.loop.state).toBe("listening");
    stage.server("session.created");
    expect(stage.take()).toEqual([settings, { type: "input_text.append", text: "How far is it" }]);
  });

  it("before the first text gives the words back", () => {
    const stage = new Stage().up().ask("How far");
    stage.loop.down();
    expect(stage.loop.state).toBe("listening");
    expect(stage.loop.notice).toMatch(/lost before the reply began; your words are kept/);
    stage.take();
    stage.server("session.created");
    expect(stage.take()).toEqual([settings, { type: "input_text.append", text: "How far" }]);
    stage.loop.hear("is the moon?");
    stage.loop.endTurn();
    expect(stage.lines).toEqual(["user: How far is the moon?"]);
  });

  it("during the reply keeps what was heard", () => {
    const stage = new Stage().up().ask().say(REPLY, 10, 20);
    stage.voice.finish();
    stage.take();
    stage.loop.down();
    expect(stage.voice.stops).toBe(1);
    expect(stage.loop.state).toBe("idle");
    expect(stage.loop.notice).toMatch(/lost during the reply/);
    expect(stage.take()).toEqual([]);
    stage.server("session.created");
    expect(stage.take()).toEqual([
      settings,
      item("user", "How far is the moon?", "user_1"),
      item("assistant", "It is far.", "reply_1"),
    ]);
  });

  it("after the reply was made lets it be spoken, and cut", () => {
    const stage = new Stage().up().ask().say(REPLY, 10, 20).done();
    stage.loop.down();
    expect(stage.loop.state).toBe("speaking");
    stage.voice.finish();
    stage.server("session.created");
    stage.take();
    stage.loop.hear("stop");
    expect(stage.take()[0]).toEqual(truncate(10));
  });

  it("after the person broke in keeps both", () => {
    const stage = new Stage().up().ask().say(REPLY, 10, 20);
    stage.voice.finish();
    stage.loop.hear("No");
    stage.loop.down();
    expect(stage.loop.state).toBe("listening");
    stage.take();
    stage.server("session.created");
    expect(stage.types().slice(1)).toEqual([
      "conversation.item.create",
      "conversation.item.create",
      "input_text.append",
    ]);
    stage.clock.pass(10_000); // nothing is waited for any more
    expect(stage.renewed).toBe(0);
  });

  it("after the turn that broke in has ended asks it once the server is back", () => {
    const stage = new Stage().up().ask().say(REPLY, 10, 20);
    stage.voice.finish();
    stage.loop.hear("And the sun?");
    stage.loop.endTurn();
    stage.loop.down();
    expect(stage.loop.state).toBe("thinking");
    stage.take();
    stage.server("session.created");
    expect(stage.types().slice(-3)).toEqual(["input_text.append", "input_text.commit", "response.create"]);
    expect(stage.lines.slice(1)).toEqual(["assistant: It is far. |", "user: And the sun?"]);
  });

  it("lets a turn end that is asked once the server is back", () => {
    const stage = new Stage();
    stage.loop.hear("Hello");
    stage.loop.endTurn();
    expect(stage.loop.state).toBe("thinking");
    expect(stage.take()).toEqual([]);
    stage.server("session.created");
    expect(stage.types()).toEqual(["session.update", "input_text.append", "input_text.commit", "response.create"]);
  });

  it("lets such a turn go on instead", () => {
    const stage = new Stage();
    stage.loop.hear("Hello");
    stage.loop.endTurn();
    stage.loop.hear("there");
    expect(stage.loop.state).toBe("listening");
    stage.server("session.created");
    expect(stage.take().at(-1)).toEqual({ type: "input_text.append", text: "Hello there" });
  });

  it("forgets everything for a new conversation", () => {
    const stage = new Stage().up().ask().say(REPLY, 10);
    stage.loop.clear();
    expect([stage.renewed, stage.voice.stops, stage.loop.state, stage.loop.reply]).toEqual([1, 1, "idle", null]);
    stage.take();
    stage.server("session.created");
    expect(stage.types()).toEqual(["session.update"]);
  });
});
