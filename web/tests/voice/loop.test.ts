import { describe, expect, it } from "vitest";
import { REPLY, Stage } from "./fakes";

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
    expect(stage.loop.running).toBe(true);
    stage.say(REPLY.slice(10), 20).done();
    expect(stage.loop.running).toBe(false); // what is left of it is spoken
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
    stage.server("x_input_text.prefilled", { tokens: 44, cached_tokens: 32, text_end: 10 });
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
        ready: [{ at: 100, tokens: 44, cached: 32 }],
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
