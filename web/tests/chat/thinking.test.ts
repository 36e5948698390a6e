import { describe, expect, it } from "vitest";
import { Conversation } from "../../src/chat/conversation";
import { keep, unkeep } from "../../src/chat/turns";
import type { ServerEvent } from "../../src/wire/events";
import { CREATED, delta, done, events, fault, items, linked, SETTINGS, turns, types } from "./talk";

const UP = { type: "session.created" };

function thought(text: string, seq: number): ServerEvent {
  return delta(text, seq, { type: "x_response.reasoning.delta" });
}

/** One whose reply has thought, and said nothing yet. */
function thinking(text = "Hm, "): Conversation {
  const conversation = linked();
  conversation.say("Hi", SETTINGS, 0);
  conversation.receive(CREATED, 1);
  conversation.receive(thought(text, 1), 2);
  return conversation;
}

describe("a reply that thinks", () => {
  it("has figures of all its tokens", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    conversation.receive(CREATED, 50);
    for (let i = 0; i < 550; i += 1) {
      const event = i < 500 ? thought(" hm", i + 1) : delta(" word", i + 1);
      conversation.receive(event, 100 + i * 20);
      expect(conversation.phase).toBe("replying");
    }
    conversation.receive(done("completed", { usage: { output_tokens: 550 } }), 100 + 549 * 20);
    expect(conversation.reply?.trace?.figures).toMatchObject({ ttft: 100, tpot: 20, rate: 50, tokens: 550 });
    expect(conversation.reply?.trace?.figures.perStep).toBe(1);
    expect(conversation.reply?.text).toBe(" word".repeat(50));
    expect(conversation.reply?.thoughts).toBe(" hm".repeat(500));
  });

  it("does not have its thoughts said again to another session", () => {
    const conversation = thinking();
    conversation.receive(delta("Hello", 2), 3);
    conversation.receive(done("completed"), 4);
    conversation.down();
    expect(items(conversation.receive(UP, 5))).toEqual([
      ["user", "Hi"],
      ["assistant", "Hello"],
    ]);
  });

  it("is taken up in the middle of a thought", () => {
    const conversation = thinking();
    conversation.down();
    expect(events(conversation.receive(UP, 5))[0]).toMatchObject({ type: "x_response.resume", starting_after: 1 });
    conversation.receive(thought("Hm, ", 1), 6);
    conversation.receive(thought("well", 2), 6);
    conversation.receive(delta("Hello", 3), 7);
    expect(conversation.reply).toMatchObject({ thoughts: "Hm, well", text: "Hello" });
  });

  it("is kept where the rest of it is gone", () => {
    const conversation = thinking();
    conversation.down();
    const [resume] = events(conversation.receive(UP, 5));
    conversation.receive(fault("Gone.", resume?.event_id, "response_not_found"), 6);
    expect(conversation.reply).toMatchObject({ thoughts: "Hm, ", state: "interrupted" });
    expect(conversation.notice?.text).toMatch(/during the reply; what had arrived is kept/);
  });

  it("is kept where it fails or is stopped while it thinks", () => {
    const failed = thinking();
    expect(failed.receive(done("failed"), 3)).toEqual([]);
    expect([failed.notice?.action, turns(failed).at(-1)]).toEqual(["retry", ["assistant", "", "failed"]]);
    const stopped = thinking();
    stopped.down();
    expect(stopped.stop()).toEqual([]);
    expect(stopped.reply).toMatchObject({ thoughts: "Hm, ", state: "stopped" });
    const unnamed = linked();
    unnamed.say("Hi", SETTINGS, 0);
    unnamed.receive({ type: "x_response.reasoning.delta", delta: "Hm" }, 1);
    unnamed.down();
    expect(unnamed.reply?.state).toBe("interrupted");
  });

  it("says so where nothing followed", () => {
    const cut = thinking();
    cut.receive(done("incomplete"), 3);
    expect(cut.reply?.note).toMatch(/^length limit reached before the answer · /);
    const silent = thinking();
    silent.receive(done("completed"), 3);
    expect(silent.reply?.note).toMatch(/^the model thought, and had nothing to say · /);
  });

  it("can be had back when it was replaced", () => {
    const conversation = thinking();
    conversation.receive(done("incomplete"), 3);
    expect(types(conversation.retry(SETTINGS, 4))).toEqual([]);
    expect(conversation.notice?.action).toBe("undo");
    conversation.undo();
    expect(conversation.reply?.thoughts).toBe("Hm, ");
  });

  it("goes on after a reload", () => {
    const conversation = new Conversation();
    conversation.load(unkeep(JSON.parse(JSON.stringify(thinking().turns.map(keep)))), "here");
    conversation.receive(UP, 60);
    conversation.receive(thought("well", 2), 61);
    expect(conversation.reply?.thoughts).toBe("Hm, well");
  });
});
