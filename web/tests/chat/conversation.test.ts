import { describe, expect, it } from "vitest";
import { Conversation } from "../../src/chat/conversation";
import { newTurn } from "../../src/chat/turns";
import {
  bodies,
  CREATED,
  delta,
  done,
  events,
  fault,
  items,
  linked,
  RENEW,
  replying,
  SETTINGS,
  settled,
  turns,
  types,
} from "./talk";

describe("a turn", () => {
  it("is an item, the session's settings once, and a request for a reply", () => {
    const conversation = linked();
    const first = conversation.say(" Hi\n there", SETTINGS, 100);
    expect(bodies(first)).toEqual([
      {
        type: "conversation.item.create",
        item: { type: "message", role: "user", content: [{ type: "input_text", text: " Hi\n there" }] },
      },
      { type: "session.update", session: { type: "realtime", output_modalities: ["text"], instructions: "" } },
      {
        type: "response.create",
        response: { temperature: 0.7, seed: 7, speculation: { mode: "auto", trace: true }, x_resume: true },
      },
    ]);
    expect(new Set(events(first).map(({ event_id }) => event_id)).size).toBe(3);

    conversation.receive(CREATED, 110);
    conversation.receive(delta("Hello", 1), 150);
    conversation.receive(done("completed", { usage: { output_tokens: 2 } }), 200);
    expect(conversation.busy).toBe(false);
    expect(conversation.model).toBe("tiny");
    expect(conversation.reply?.text).toBe("Hello");
    expect(conversation.reply?.trace?.figures.ttft).toBe(50);
    expect(conversation.reply?.note).toMatch(/speculation on .* 2 tokens · seed 7/);
    expect(types(conversation.say("And?", SETTINGS, 300))).toEqual(["conversation.item.create", "response.create"]);
  });

  it("brings a changed system prompt to the session first", () => {
    const next = settled().say("And?", { ...SETTINGS, instructions: "Rhyme." }, 4);
    expect(bodies(next)[1]).toMatchObject({ session: { instructions: "Rhyme." } });
  });

  it("does not send unset settings, and turns speculation off", () => {
    const settings = { ...SETTINGS, temperature: null, maxTokens: 9, speculation: false };
    expect(bodies(linked().say("Hi", settings, 0)).at(-1)).toEqual({
      type: "response.create",
      response: { seed: 7, max_output_tokens: 9, speculation: { mode: "none", trace: true }, x_resume: true },
    });
  });

  it("goes nowhere when it is blank or a reply runs", () => {
    expect(replying().say("More", SETTINGS, 9)).toEqual([]);
    expect(linked().say(" \n ", SETTINGS, 0)).toEqual([]);
    expect(replying().edit(1, "More", SETTINGS, 9)).toEqual([]);
    expect(replying().retry(SETTINGS, 9)).toEqual([]);
    expect(linked().retry(SETTINGS, 9)).toEqual([]);
  });

  it.each(["é".repeat(500_000), "\n".repeat(500_000)])("over the frame limit is handed back", (huge) => {
    const conversation = linked();
    expect(conversation.say(`x${huge}`, SETTINGS, 0)).toEqual([{ do: "restore", text: `x${huge}` }]);
    expect(conversation.notice?.text).toMatch(/shorten/);
    expect(conversation.turns).toEqual([]);
  });
});

describe("deltas", () => {
  it("grow the reply as they came, and strangers' do not", () => {
    const conversation = replying("Hel");
    conversation.receive(delta("lo \n<b>", 2, { x_spec: { drafted: 4, accepted: 2, emitted: 3 } }), 5);
    conversation.receive(delta("other", 3, { response_id: "r2" }), 6);
    conversation.receive({ type: "response.output_text.delta", response_id: "r" }, 7);
    conversation.receive({ type: "response.done", response: { id: "r2", status: "completed" } }, 8);
    expect(conversation.reply?.text).toBe("Hello \n<b>");
    expect(conversation.reply?.trace?.figures).toMatchObject({ tokens: 4, drafted: 4, accepted: 2 });
    expect(conversation.phase).toBe("replying");
  });

  it("come without a number, a name or figures from other servers", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    conversation.receive({ type: "response.output_text.delta", delta: "Aye" }, 1);
    conversation.receive({ type: "response.done", response: { status: "completed" } }, 2);
    expect(turns(conversation).at(-1)).toEqual(["assistant", "Aye", "done"]);
  });

  it("end with a note where the length limit cut them, or none came", () => {
    const cut = replying();
    cut.receive(done("incomplete"), 3);
    expect(cut.reply).toMatchObject({ state: "cut", note: expect.stringMatching(/^length limit/) });
    const empty = linked();
    empty.say("Hi", SETTINGS, 0);
    empty.receive(done("completed"), 1);
    expect(empty.reply?.note).toMatch(/nothing/);
  });
});

describe("stop", () => {
  it("cancels once and keeps what arrived", () => {
    const conversation = replying("Hel");
    expect(types(conversation.stop())).toEqual(["response.cancel"]);
    expect(conversation.stop()).toEqual([]);
    conversation.receive(delta("lo", 2), 3); // on its way when we asked
    conversation.receive(done("cancelled"), 4);
    expect(turns(conversation).at(-1)).toEqual(["assistant", "Hello", "stopped"]);
    expect(conversation.busy).toBe(false);
  });

  it("is no error where it crosses the reply's end", () => {
    const conversation = replying();
    const [cancel] = events(conversation.stop());
    conversation.receive(done("completed"), 3);
    conversation.receive(fault("Nothing to cancel.", cancel?.event_id), 4);
    expect(conversation.notice).toBeNull();
    expect(conversation.reply?.state).toBe("done");
  });

  it("is said again when it came before the reply existed", () => {
    const conversation = linked();
    conversation.say("Hi", SETTINGS, 0);
    const [early] = events(conversation.stop());
    conversation.receive(fault("Nothing to cancel.", early?.event_id), 1);
    expect(conversation.phase).toBe("stopping");
    expect(types(conversation.receive(CREATED, 2))).toEqual(["response.cancel"]);
    conversation.receive(done("cancelled"), 3);
    expect([conversation.busy, conversation.notice, conversation.reply?.state]).toEqual([false, null, "stopped"]);
  });

  it("leaves the session when it is never confirmed, and keeps the text", () => {
    const conversation = replying("Hel");
    expect(conversation.giveUp()).toEqual([]);
    conversation.stop();
    expect(conversation.giveUp().at(-1)).toEqual(RENEW);
    expect(turns(conversation).at(-1)).toEqual(["assistant", "Hel", "stopped"]);
  });

  it("returns the words where there is no connection, and keeps a reply that had begun", () => {
    const unsent = new Conversation();
    unsent.say("Hi", SETTINGS, 0);
    expect(unsent.stop()).toEqual([{ do: "restore", text: "Hi" }]);
    expect(unsent.turns).toEqual([]);
    const begun = replying("Hel");
    begun.down();
    expect(begun.stop()).toEqual([]);
    expect(turns(begun).at(-1)).toEqual(["assistant", "Hel", "stopped"]);
  });
});

describe("a refusal", () => {
  it.each([0, 1, 2])("of event %i returns the words, says why, and leaves the session that may hold them", (which) => {
    const conversation = linked();
    const asked = events(conversation.say("Too long", SETTINGS, 0));
    const effects = conversation.receive(fault("Shorten it.", asked[which]?.event_id), 1);
    expect(effects).toEqual([{ do: "restore", text: "Too long" }, RENEW]);
    expect(conversation.turns).toEqual([]);
    expect(conversation.notice).toEqual({ text: "Shorten it." });
    expect(conversation.busy).toBe(false);
  });

  it("ends a turn that is being stopped", () => {
    const conversation = linked();
    const create = events(conversation.say("Hi", SETTINGS, 0)).at(-1);
    conversation.stop();
    expect(conversation.receive(fault("Busy.", create?.event_id), 1)).toEqual([{ do: "restore", text: "Hi" }, RENEW]);
    expect(conversation.busy).toBe(false);
  });

  it("before the first word withdraws the turn, later it keeps the reply to be tried again", () => {
    const failed = done("failed", {
      status_details: { error: { message: "The engine stopped.", code: "engine_error" } },
    });
    const early = linked();
    early.say("Hi", SETTINGS, 0);
    early.receive(CREATED, 1);
    expect(early.receive(failed, 2)).toEqual([{ do: "restore", text: "Hi" }, RENEW]);

    const late = replying("Hel");
    expect(late.receive(failed, 3)).toEqual([]);
    expect(late.notice?.action).toBe("retry");
    expect(late.notice?.text).toMatch(/^The engine stopped\. Try again/);
    expect(turns(late).at(-1)).toEqual(["assistant", "Hel", "failed"]);
    expect(late.retry(SETTINGS, 4)).toEqual([RENEW]);
    const again = late.receive({ type: "session.created" }, 5);
    expect(items(again)).toEqual([["user", "Hi"]]);
    expect(types(again).at(-1)).toBe("response.create");
  });

  it("of something else is told and ends nothing", () => {
    const conversation = replying();
    conversation.receive(fault("Odd.", "someone"), 3);
    expect(conversation.notice).toEqual({ text: "Odd." });
    expect(conversation.phase).toBe("replying");
    conversation.receive({ type: "error" }, 4);
    expect(conversation.notice?.text).toMatch(/try again/);
  });
});

describe("other turns", () => {
  it("replace an edited turn and what came after it, and can be had back", () => {
    const conversation = settled("Hello");
    conversation.say("Two", SETTINGS, 4);
    conversation.receive(done("completed"), 5);
    const before = turns(conversation);
    const [first] = conversation.turns;
    expect(conversation.edit(first?.key ?? 0, "Hi, all", SETTINGS, 6)).toEqual([RENEW]);
    expect(turns(conversation)).toEqual([
      ["user", "Hi, all", "done"],
      ["assistant", "", "running"],
    ]);
    expect(conversation.notice?.action).toBe("undo");
    expect(items(conversation.receive({ type: "session.created" }, 7))).toEqual([["user", "Hi, all"]]);

    expect(types(conversation.undo())).toEqual(["response.cancel"]); // the new reply would go on without its socket
    expect(turns(conversation)).toEqual(before);
    expect([conversation.busy, conversation.notice]).toEqual([false, null]);
    expect(conversation.undo()).toEqual([]);
  });

  it("are kept where an edited turn is refused, and its words come to the composer", () => {
    const conversation = settled();
    conversation.edit(conversation.turns[0]?.key ?? 0, "Worse", SETTINGS, 4);
    const asked = events(conversation.receive({ type: "session.created" }, 5));
    const effects = conversation.receive(fault("No.", asked.at(-1)?.event_id), 6);
    expect(effects).toEqual([{ do: "restore", text: "Worse" }, RENEW]);
    expect(turns(conversation).map(([, text]) => text)).toEqual(["Hi", "Hello"]);
  });

  it("come back where another reply is refused", () => {
    const conversation = settled();
    conversation.retry(SETTINGS, 4);
    const asked = events(conversation.receive({ type: "session.created" }, 5));
    expect(conversation.receive(fault("No.", asked.at(-1)?.event_id), 6)).toEqual([RENEW]);
    expect(turns(conversation).map(([, text]) => text)).toEqual(["Hi", "Hello"]);
  });

  it("of a turn that is not there, or blank, or too long, stay", () => {
    const conversation = settled();
    const key = conversation.turns[0]?.key ?? 0;
    expect(conversation.edit(-1, "x", SETTINGS, 4)).toEqual([]);
    expect(conversation.edit(key + 1, "x", SETTINGS, 4)).toEqual([]); // the model's
    expect(conversation.edit(key, " ", SETTINGS, 4)).toEqual([]);
    expect(conversation.edit(key, "é".repeat(500_000), SETTINGS, 4)).toEqual([]);
    expect(conversation.notice?.text).toMatch(/shorten/);
    expect(conversation.turns.length).toBe(2);
  });

  it("in place of all stop what runs", () => {
    const conversation = replying();
    const reply = conversation.reply;
    const effects = conversation.load([]);
    expect(types(effects)).toEqual(["response.cancel"]);
    expect(effects.at(-1)).toEqual(RENEW);
    expect([conversation.turns, conversation.busy, reply?.state]).toEqual([[], false, "stopped"]);
    expect(conversation.receive({ type: "session.created" }, 9)).toEqual([]);
  });
});

describe("a turn that no frame holds", () => {
  const kept = [newTurn("user", "x".repeat(2_000_000)), newTurn("assistant", "Hello")];

  it("is never sent, and named where something is asked", () => {
    const conversation = linked();
    conversation.load(kept);
    expect(conversation.receive({ type: "session.created" }, 0)).toEqual([]);
    expect(conversation.say("Hi", SETTINGS, 0)).toEqual([{ do: "restore", text: "Hi" }]);
    expect(conversation.notice?.text).toContain("A turn of this conversation is too long");
    expect(conversation.retry(SETTINGS, 0)).toEqual([]);
    conversation.edit(kept[0]?.key ?? 0, "Shorter", SETTINGS, 0);
    expect(conversation.turns[0]?.text).toBe("Shorter");
  });
});
