import { describe, expect, it } from "vitest";
import { REPLY, Stage, truncate } from "./fakes";

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
