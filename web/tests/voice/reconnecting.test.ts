import { describe, expect, it } from "vitest";
import { REPLY, Stage, truncate } from "./fakes";

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
