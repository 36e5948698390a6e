import assert from "node:assert/strict";
import test from "node:test";

import { Conversation } from "../../web/conversation.js";

const SETTINGS = { instructions: "", temperature: 0.7, seed: 7, maxTokens: null, speculation: true };
const RENEW = { do: "renew" };

const events = (effects) => effects.filter((effect) => effect.do === "send").map(({ event }) => event);
const types = (effects) => events(effects).map(({ type }) => type);
const text = (item) => item.pieces.map((piece) => piece.text).join("");
const delta = (words, more = {}) => ({ type: "response.output_text.delta", response_id: "r", delta: words, x_spec: { drafted: 0, accepted: 0, emitted: 1 }, ...more });
const done = (status, more = {}) => ({ type: "response.done", response: { id: "r", status, ...more } });
const created = { type: "response.created", response: { id: "r" } };

function linked() {
  const conversation = new Conversation();
  conversation.receive({ type: "session.created", session: { model: "tiny" } }, 0);
  return conversation;
}

function replying(words = "Hel") {
  const conversation = linked();
  const asked = conversation.say("Hi", SETTINGS, 0);
  conversation.receive(created, 1);
  conversation.receive(delta(words), 2);
  return { conversation, asked };
}

test("a turn is an item, the session's settings once, and a request for a reply", () => {
  const conversation = linked();
  const first = conversation.say(" Hi\n there", SETTINGS, 100);
  assert.deepEqual(types(first), ["conversation.item.create", "session.update", "response.create"]);
  const [item, update, create] = events(first);
  assert.deepEqual(item.item, { type: "message", role: "user", content: [{ type: "input_text", text: " Hi\n there" }] });
  assert.deepEqual(update.session, { type: "realtime", output_modalities: ["text"], instructions: "" });
  assert.deepEqual(create.response, { speculation: { mode: "auto" }, temperature: 0.7, seed: 7 });
  assert.equal(new Set(events(first).map((event) => event.event_id)).size, 3);

  conversation.receive(created, 110);
  conversation.receive(delta("Hello"), 150);
  conversation.receive(done("completed", { usage: { output_tokens: 2 } }), 200);
  assert.equal(conversation.busy, false);
  assert.equal(conversation.model, "tiny");
  assert.equal(text(conversation.reply), "Hello");
  assert.equal(conversation.reply.figures.ttft, 50);
  assert.equal(conversation.reply.figures.tokens, 2);

  assert.deepEqual(types(conversation.say("And?", SETTINGS, 300)), ["conversation.item.create", "response.create"]);
});

test("a changed system prompt reaches the session before the next reply", () => {
  const { conversation } = replying();
  conversation.receive(done("completed"), 3);
  const next = conversation.say("And?", { ...SETTINGS, instructions: "Rhyme." }, 4);
  assert.deepEqual(types(next), ["conversation.item.create", "session.update", "response.create"]);
  assert.equal(events(next)[1].session.instructions, "Rhyme.");
});

test("unset settings are not sent, and the switch turns speculation off", () => {
  const sent = linked().say("Hi", { instructions: "", temperature: null, seed: null, maxTokens: 9, speculation: false }, 0);
  assert.deepEqual(events(sent).at(-1).response, { speculation: { mode: "none" }, max_output_tokens: 9 });
});

test("deltas grow the reply as they came, and strangers' do not", () => {
  const { conversation } = replying("Hel");
  conversation.receive(delta("lo \n<b>", { x_spec: { drafted: 4, accepted: 2, emitted: 3 } }), 5);
  conversation.receive(delta("other", { response_id: "r2" }), 6);
  conversation.receive(delta(undefined), 7);
  conversation.receive(done("completed", { id: "r2" }), 8);
  assert.deepEqual(conversation.reply.pieces, [{ text: "Hel", emitted: 1 }, { text: "lo \n<b>", emitted: 3 }]);
  assert.equal(conversation.phase, "replying");
});

test("blank messages and messages during a reply go nowhere", () => {
  const { conversation } = replying();
  assert.deepEqual(conversation.say("More", SETTINGS, 9), []);
  assert.deepEqual(linked().say(" \n ", SETTINGS, 0), []);
});

test("a message over the frame limit is handed back with a sentence", () => {
  const conversation = linked();
  for (const huge of ["é".repeat(500_000), "\n".repeat(500_000)]) { // bytes on the wire count, not characters
    assert.deepEqual(conversation.say(`x${huge}`, SETTINGS, 0), [{ do: "restore", text: `x${huge}` }]);
  }
  assert.match(conversation.notice.text, /shorten/);
  assert.equal(conversation.items.length, 0);
});

test("stop cancels once and keeps what arrived", () => {
  const { conversation } = replying("Hel");
  const cancel = conversation.stop();
  assert.deepEqual(types(cancel), ["response.cancel"]);
  assert.deepEqual(conversation.stop(), []);
  conversation.receive(delta("lo"), 3); // on its way when we asked
  conversation.receive(done("cancelled"), 4);
  assert.equal(conversation.busy, false);
  assert.equal(conversation.reply.state, "stopped");
  assert.equal(text(conversation.reply), "Hello");
});

test("a stop that crosses the reply's end is no error", () => {
  const { conversation } = replying();
  const [cancel] = events(conversation.stop());
  conversation.receive(done("completed"), 3);
  conversation.receive({ type: "error", error: { message: "Nothing to cancel.", event_id: cancel.event_id } }, 4);
  assert.equal(conversation.notice, null);
  assert.equal(conversation.reply.state, "done");
});

test("a stop that comes before the reply exists is said again when it does", () => {
  const conversation = linked();
  conversation.say("Hi", SETTINGS, 0);
  const [early] = events(conversation.stop());
  conversation.receive({ type: "error", error: { message: "Nothing to cancel.", event_id: early.event_id } }, 1);
  assert.equal(conversation.phase, "stopping");
  assert.deepEqual(types(conversation.receive(created, 2)), ["response.cancel"]);
  conversation.receive(done("cancelled"), 3);
  assert.deepEqual([conversation.busy, conversation.notice, conversation.reply.state], [false, null, "stopped"]);
});

test("a stop that is never confirmed leaves the session and keeps the text", () => {
  const { conversation } = replying("Hel");
  assert.deepEqual(conversation.giveUp(), []);
  conversation.stop();
  assert.deepEqual(conversation.giveUp(), [RENEW]);
  assert.equal(conversation.busy, false);
  assert.equal(text(conversation.reply), "Hel");
});

test("a refused turn returns its words, says why, and leaves the session that may hold them", () => {
  for (const which of [0, 1, 2]) {
    const conversation = linked();
    const asked = events(conversation.say("Too long", SETTINGS, 0));
    const effects = conversation.receive({ type: "error", error: { message: "Shorten it.", event_id: asked[which].event_id } }, 1);
    assert.deepEqual(effects, [{ do: "restore", text: "Too long" }, RENEW]);
    assert.deepEqual(conversation.items, []);
    assert.equal(conversation.notice.text, "Shorten it.");
    assert.equal(conversation.busy, false);
  }
});

test("a turn that is refused while it is being stopped is over", () => {
  const conversation = linked();
  const create = events(conversation.say("Hi", SETTINGS, 0)).at(-1);
  conversation.stop();
  const effects = conversation.receive({ type: "error", error: { message: "Busy.", event_id: create.event_id } }, 1);
  assert.deepEqual(effects, [{ do: "restore", text: "Hi" }, RENEW]);
  assert.equal(conversation.busy, false);
});

test("a reply that failed before its first word is refused, one that broke off is kept and can be tried again", () => {
  const failed = done("failed", { status_details: { error: { message: "The engine stopped." } } });
  const early = linked();
  early.say("Hi", SETTINGS, 0);
  early.receive(created, 1);
  assert.deepEqual(early.receive(failed, 2), [{ do: "restore", text: "Hi" }, RENEW]);

  const { conversation } = replying("Hel");
  assert.deepEqual(conversation.receive(failed, 3), []);
  assert.deepEqual(conversation.notice, { text: "The engine stopped.", retry: true });
  assert.deepEqual(conversation.retry(SETTINGS, 4), [RENEW]);
  const again = conversation.receive({ type: "session.created" }, 5);
  assert.deepEqual(types(again), ["conversation.item.create", "session.update", "response.create"]);
  assert.equal(text(conversation.items[0]), "Hi");
});

test("other errors are told and end nothing", () => {
  const { conversation } = replying();
  conversation.receive({ type: "error", error: { message: "Odd.", event_id: "someone" } }, 3);
  assert.equal(conversation.notice.text, "Odd.");
  assert.equal(conversation.phase, "replying");
  conversation.receive({ type: "error" }, 4);
  assert.match(conversation.notice.text, /try again/);
});

test("a reply cut by the length limit says so, and an empty one too", () => {
  const { conversation } = replying();
  conversation.receive(done("incomplete"), 3);
  assert.match(conversation.reply.note, /length/);
  const empty = linked();
  empty.say("Hi", SETTINGS, 0);
  empty.receive(done("completed"), 1);
  assert.match(empty.reply.note, /nothing/);
});

test("a new session gets everything said so far, in order, before the next reply", () => {
  const { conversation } = replying("Hello");
  conversation.receive(done("completed"), 3);
  conversation.down();
  assert.deepEqual(conversation.say("And?", SETTINGS, 4), []); // kept until there is a session
  const replay = events(conversation.receive({ type: "session.created" }, 1000));
  assert.deepEqual(
    replay.map(({ type, item }) => [type, item?.role, item?.content]),
    [
      ["conversation.item.create", "user", [{ type: "input_text", text: "Hi" }]],
      ["conversation.item.create", "assistant", [{ type: "output_text", text: "Hello" }]],
      ["conversation.item.create", "user", [{ type: "input_text", text: "And?" }]],
      ["session.update", undefined, undefined],
      ["response.create", undefined, undefined],
    ],
  );
  conversation.receive(delta("So", { response_id: "new" }), 1040);
  assert.equal(conversation.reply.figures.ttft, 40); // from the request, not from the wait for a connection
});

test("a drop before the first word asks once more by itself, then hands the choice back", () => {
  const conversation = linked();
  conversation.say("Hi", SETTINGS, 0);
  conversation.down();
  assert.equal(conversation.phase, "asking");
  assert.equal(types(conversation.receive({ type: "session.created" }, 1)).at(-1), "response.create");
  conversation.down();
  assert.equal(conversation.busy, false);
  assert.deepEqual([conversation.reply.state, conversation.notice.retry], ["interrupted", true]);
  assert.deepEqual(types(conversation.receive({ type: "session.created" }, 2)), ["conversation.item.create"]);
});

test("a drop during the reply keeps its text, which is replayed and can be tried again", () => {
  const { conversation } = replying("Hel");
  conversation.down();
  assert.equal(conversation.busy, false);
  assert.equal(conversation.notice.retry, true);
  const replay = events(conversation.receive({ type: "session.created" }, 5));
  assert.deepEqual(replay.map(({ item }) => item.content[0].text), ["Hi", "Hel"]);
});

test("stop without a connection returns the words", () => {
  const conversation = new Conversation();
  conversation.say("Hi", SETTINGS, 0);
  assert.deepEqual(conversation.stop(), [{ do: "restore", text: "Hi" }]);
  assert.deepEqual(conversation.items, []);
  assert.equal(conversation.busy, false);
});

test("a new conversation forgets all, also during a reply", () => {
  const { conversation } = replying();
  assert.deepEqual(conversation.clear(), [RENEW]);
  assert.deepEqual([conversation.items, conversation.busy], [[], false]);
  assert.deepEqual(conversation.receive({ type: "session.created" }, 9), []);
});
