import { describe, expect, it } from "vitest";
import { Conversation } from "../../src/chat/conversation";
import { keep, unkeep } from "../../src/chat/turns";
import {
  bodies,
  CREATED,
  delta,
  done,
  events,
  fault,
  items,
  linked,
  replying,
  SETTINGS,
  settled,
  turns,
  types,
} from "./talk";

const UP = { type: "session.created" };

describe("a drop", () => {
  it("between turns has everything said again, in order, before the next reply", () => {
    const conversation = settled("Hello");
    conversation.down();
    expect(conversation.say("And?", SETTINGS, 4)).toEqual([]); // kept until there is a session
    const replay = conversation.receive(UP, 1000);
    expect(items(replay)).toEqual([
      ["user", "Hi"],
      ["assistant", "Hello"],
      ["user", "And?"],
    ]);
    expect(types(replay).slice(3)).toEqual(["session.update", "response.create"]);
    conversation.receive(delta("So", 1, { response_id: "new" }), 1040);
    expect(conversation.reply?.trace?.figures.ttft).toBe(40); // from the request, not from the wait for a connection
  });

  it("before the reply has a name asks once more by itself, then hands the choice back", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    conversation.down();
    expect(conversation.phase).toBe("asking");
    expect(types(conversation.receive(UP, 1)).at(-1)).toBe("response.create");
    conversation.down();
    expect(conversation.busy).toBe(false);
    expect([conversation.reply?.state, conversation.notice?.action]).toEqual(["interrupted", "retry"]);
    expect(types(conversation.receive(UP, 2))).toEqual(["conversation.item.create"]);
  });

  it("during the reply takes it up where it broke off, before anything else", () => {
    const conversation = replying("Hel");
    conversation.down();
    expect(conversation.phase).toBe("replying");
    const resume = { type: "x_response.resume", response_id: "r", starting_after: 1 };
    expect(bodies(conversation.receive(UP, 5))).toEqual([resume]);
    conversation.receive(delta("Hel", 1), 6); // replayed: it had arrived
    conversation.receive(delta("lo", 2), 6);
    conversation.down();
    expect(bodies(conversation.receive(UP, 7))).toEqual([{ ...resume, starting_after: 2 }]);
    conversation.receive(delta("!", 3), 8);
    conversation.receive(done("completed"), 9);
    conversation.receive(done("completed"), 9);
    expect(turns(conversation).at(-1)).toEqual(["assistant", "Hello!", "done"]);
    expect(conversation.notice).toBeNull();
  });

  it("before the first word takes the reply up as well", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    conversation.receive(CREATED, 1);
    conversation.down();
    expect(bodies(conversation.receive(UP, 5))).toMatchObject([{ type: "x_response.resume", starting_after: 0 }]);
  });

  it("keeps what arrived where the server has no more of it", () => {
    for (const code of ["response_not_found", "resume_gone", "unknown_event"]) {
      const conversation = replying("Hel");
      conversation.down();
      const [resume] = events(conversation.receive(UP, 5));
      const replay = conversation.receive(fault("Gone.", resume?.event_id, code), 6);
      expect(items(replay)).toEqual([
        ["user", "Hi"],
        ["assistant", "Hel"],
      ]);
      expect(turns(conversation).at(-1)).toEqual(["assistant", "Hel", "interrupted"]);
      expect(conversation.notice).toMatchObject({ action: "retry", text: expect.stringContaining("kept") });
    }
  });

  it("asks again where the server has forgotten a reply without a word", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    conversation.receive(CREATED, 1);
    conversation.down();
    const [resume] = events(conversation.receive(UP, 5));
    const again = conversation.receive(fault("Gone.", resume?.event_id, "response_not_found"), 6);
    expect(types(again)).toEqual(["conversation.item.create", "session.update", "response.create"]);
    expect(conversation.phase).toBe("asking");
    conversation.receive({ type: "response.created", response: { id: "r2" } }, 7);
    conversation.receive(delta("Hi!", 1, { response_id: "r2" }), 8);
    expect(conversation.reply?.text).toBe("Hi!");
  });

  it("while a stop is on its way resumes only to stop", () => {
    const conversation = replying("Hel");
    conversation.stop();
    conversation.down();
    const effects = conversation.receive(UP, 5);
    expect(types(effects)).toEqual(["x_response.resume", "response.cancel"]);
    conversation.receive(fault("Gone.", events(effects)[0]?.event_id), 6);
    expect(turns(conversation).at(-1)).toEqual(["assistant", "Hel", "stopped"]);
    expect(conversation.busy).toBe(false);
  });

  it("while an unnamed reply is being stopped ends it", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    conversation.stop();
    conversation.down();
    expect([conversation.busy, conversation.reply?.state]).toEqual([false, "stopped"]);
  });

  it("of a server that names nothing keeps what arrived", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    conversation.receive({ type: "response.output_text.delta", delta: "He" }, 1);
    conversation.down();
    expect([conversation.busy, conversation.reply?.state]).toEqual([false, "interrupted"]);
  });
});

describe("a reload", () => {
  const stored = () => JSON.parse(JSON.stringify(replying("Hel").turns.map(keep)));

  it("takes the reply up", () => {
    const conversation = new Conversation();
    conversation.load(unkeep(stored()), "here");
    expect(conversation.phase).toBe("replying");
    expect(types(conversation.receive(UP, 60))).toEqual(["x_response.resume"]);
    conversation.receive(delta("lo", 2), 61);
    expect(conversation.reply?.trace?.figures.ttft).toBeNull(); // its first text came to the page before
    conversation.receive(done("completed"), 62);
    expect(turns(conversation)).toEqual([
      ["user", "Hi", "done"],
      ["assistant", "Hello", "done"],
    ]);
    expect(conversation.reply?.trace?.figures.tokens).toBe(1);
  });

  it("that was too long ago keeps what had arrived", () => {
    const conversation = new Conversation();
    conversation.load(unkeep(stored()), "here");
    const [resume] = events(conversation.receive(UP, 60));
    conversation.receive(fault("Gone.", resume?.event_id, "response_not_found"), 61);
    expect(turns(conversation).at(-1)).toEqual(["assistant", "Hel", "interrupted"]);
    expect(conversation.notice?.action).toBe("retry");
  });

  it("of a reply without a word offers to try again", () => {
    const asked = linked();
    asked.say("Hi", SETTINGS, 0);
    asked.receive(CREATED, 1);
    const conversation = new Conversation();
    conversation.load(unkeep(asked.turns.map(keep)), "here");
    const [resume] = events(conversation.receive(UP, 60));
    conversation.receive(fault("Gone.", resume?.event_id), 61);
    expect([conversation.busy, conversation.notice?.action]).toEqual([false, "retry"]);
  });

  it("in another tab waits for a reply that comes to the first one", () => {
    const conversation = new Conversation();
    conversation.load(unkeep(stored()), "elsewhere");
    expect([conversation.busy, conversation.elsewhere]).toEqual([false, true]);
    expect(conversation.reply).toMatchObject({ state: "running", note: "being written in another tab" });
    expect(conversation.receive(UP, 60)).toEqual([]);
    expect(conversation.say("More", SETTINGS, 61)).toEqual([{ do: "restore", text: "More" }]);
    expect(conversation.edit(conversation.turns[0]?.key ?? 0, "Ho", SETTINGS, 61)).toEqual([]);
    expect(conversation.retry(SETTINGS, 61)).toEqual([]);
    expect(conversation.notice?.text).toContain("in another tab");
    expect(turns(conversation)).toEqual([
      ["user", "Hi", "done"],
      ["assistant", "Hel", "running"],
    ]);
    conversation.load([]);
    expect(conversation.elsewhere).toBe(false);
  });

  it("that took the reply up keeps it, and this one resumes nothing any more", () => {
    const conversation = replying("Hel");
    conversation.giveWay();
    expect([conversation.busy, conversation.elsewhere, conversation.reply?.state]).toEqual([false, true, "running"]);
    expect(types(conversation.receive(UP, 60))).toEqual([]);
    conversation.giveWay();
    const idle = settled();
    idle.giveWay();
    expect(idle.elsewhere).toBe(false);
  });

  it("of a reply that comes to nobody does not take it up in another tab", () => {
    const conversation = new Conversation();
    conversation.load(unkeep(stored()));
    expect(conversation.busy).toBe(false);
    expect(turns(conversation).at(-1)).toEqual(["assistant", "Hel", "interrupted"]);
    expect(types(conversation.receive(UP, 60))).toEqual(["conversation.item.create", "conversation.item.create"]);
  });
});
