// The conversation without I/O: what the person does and what the server says come in, effects go out.
//
// A method returns a list of effects for its caller to carry out, in order:
//   {do: "send", event}     an event for the realtime socket
//   {do: "renew"}           a new socket; its session starts empty and gets the conversation replayed
//   {do: "restore", text}   give the person's words back to the composer
//
// A session lives as long as its socket. The page owns the conversation, so a lost socket loses nothing: on
// session.created everything said so far is sent again before a reply is asked for.

import { Figures } from "./figures.js";

const LARGEST_FRAME = 1_000_000; // bytes; the server closes a socket on a frame over 1 MiB
const ASKS_PER_TURN = 2; // a turn whose socket drops before any text is asked once more by itself

const send = (event) => ({ do: "send", event });
const RENEW = { do: "renew" };

function messageEvent(role, text) {
  const type = role === "assistant" ? "output_text" : "input_text";
  return { type: "conversation.item.create", item: { type: "message", role, content: [{ type, text }] } };
}

export class Conversation {
  /** Turns in order: {key, role, pieces: [{text, emitted}], state, note, figures, settings}. */
  items = [];
  /** idle: nothing runs; asking: no text yet; replying: text arrives; stopping: cancel was sent. */
  phase = "idle";
  /** A sentence for the person, and whether "Try again" makes sense with it. */
  notice = null;
  /** The served model's name, once a session told it. */
  model = "";

  #linked = false;
  #serial = 0;
  #asks = 0;
  #instructions = null; // what the session has, null before it was told
  #responseId = null;
  #turnIds = new Set(); // ids of the events that made up this turn: an error about one of them refuses the turn
  #cancelIds = new Set();

  get busy() {
    return this.phase !== "idle";
  }

  get reply() {
    const last = this.items.at(-1);
    return last?.role === "assistant" ? last : null;
  }

  /** The person sends `text`. `settings`: {instructions, temperature, seed, maxTokens, speculation}; null is unset. */
  say(text, settings, now) {
    if (this.busy || text.trim() === "") return [];
    if (new TextEncoder().encode(JSON.stringify(messageEvent("user", text))).length > LARGEST_FRAME) {
      this.notice = { text: "This message is too long to send, about 1 MB; shorten it." };
      return [{ do: "restore", text }];
    }
    this.#add("user", [{ text, emitted: 0 }], "done");
    const message = this.#linked ? [send(this.#own(messageEvent("user", text)))] : [];
    return [...message, ...this.#begin(settings, now)];
  }

  /** Stops the reply; what has arrived stays. */
  stop() {
    if (this.phase !== "asking" && this.phase !== "replying") return [];
    if (!this.#linked) return this.#withdraw(null);
    this.phase = "stopping";
    return this.#cancel();
  }

  /** The server did not confirm a stop in time: leave its session behind. */
  giveUp() {
    if (this.phase !== "stopping") return [];
    this.#end("stopped", "stopped");
    return this.#renew();
  }

  /** Forgets everything and starts over. */
  clear() {
    this.items = [];
    this.phase = "idle";
    this.notice = null;
    return this.#renew();
  }

  /** Asks again for a reply that broke off: in a new session, so that the server keeps no half of the old one. */
  retry(settings, now) {
    if (this.busy || !["failed", "interrupted"].includes(this.reply?.state)) return [];
    this.items.pop();
    const renew = this.#renew();
    return [...renew, ...this.#begin(settings, now)];
  }

  /** The socket is gone. */
  down() {
    this.#linked = false;
    this.#responseId = null;
    if (this.phase === "stopping") this.#end("stopped", "stopped");
    else if (this.phase === "replying" || (this.phase === "asking" && this.#asks >= ASKS_PER_TURN)) {
      const arrived = this.reply.pieces.length > 0;
      this.#end("interrupted", "connection lost");
      const when = arrived ? "during the reply; what had arrived is kept" : "twice before the reply began";
      this.notice = { text: `The connection was lost ${when}.`, retry: true };
    }
  }

  /** One event from the server, at time `now` in milliseconds. */
  receive(event, now) {
    switch (event.type) {
      case "session.created":
        return this.#up(event.session, now);
      case "response.created":
        if (this.busy) this.#responseId ??= event.response?.id ?? null;
        return this.phase === "stopping" ? this.#cancel() : []; // the first may have come before there was a response
      case "response.output_text.delta":
        if (this.#ours(event.response_id)) this.#grow(event, now);
        return [];
      case "response.done":
        return this.#ours(event.response?.id) ? this.#finish(event.response) : [];
      case "error":
        return this.#fault(event.error ?? {});
      default:
        return []; // the protocol has more events than a text page needs
    }
  }

  #nextId() {
    this.#serial += 1;
    return `page_${this.#serial}`;
  }

  #add(role, pieces, state, more = {}) {
    this.#serial += 1;
    this.items.push({ key: this.#serial, role, pieces, state, note: "", ...more });
  }

  #own(event) {
    const id = this.#nextId();
    this.#turnIds.add(id);
    return { ...event, event_id: id };
  }

  #cancel() {
    const id = this.#nextId();
    this.#cancelIds.add(id);
    return [send({ type: "response.cancel", event_id: id })];
  }

  #ours(id) {
    return this.busy && (id === undefined || this.#responseId === null || id === this.#responseId);
  }

  #renew() {
    this.#linked = false;
    this.#responseId = null;
    return [RENEW];
  }

  #begin(settings, now) {
    this.notice = null;
    this.phase = "asking";
    this.#asks = 0;
    this.#add("assistant", [], "running", { figures: new Figures(now), settings });
    return this.#linked ? this.#ask(now) : [];
  }

  #ask(now) {
    const { settings } = this.reply;
    const response = { speculation: { mode: settings.speculation ? "auto" : "none" } };
    if (settings.temperature !== null) response.temperature = settings.temperature;
    if (settings.seed !== null) response.seed = settings.seed;
    if (settings.maxTokens !== null) response.max_output_tokens = settings.maxTokens;
    this.#asks += 1;
    this.reply.figures = new Figures(now); // TTFT counts from this very event
    return [...this.#configure(settings), send(this.#own({ type: "response.create", response }))];
  }

  #configure({ instructions }) {
    if (instructions === this.#instructions) return [];
    this.#instructions = instructions;
    const session = { type: "realtime", output_modalities: ["text"], instructions };
    return [send(this.#own({ type: "session.update", session }))];
  }

  #up(session, now) {
    this.#linked = true;
    this.#instructions = null;
    this.#turnIds.clear();
    this.#cancelIds.clear();
    this.model = typeof session?.model === "string" ? session.model : this.model;
    const said = this.items
      .map(({ role, pieces }) => ({ role, text: pieces.map(({ text }) => text).join("") }))
      .filter(({ text }) => text !== "");
    const replay = said.map(({ role, text }) => send(this.#own(messageEvent(role, text))));
    return this.phase === "asking" ? [...replay, ...this.#ask(now)] : replay;
  }

  #grow({ delta, x_spec: spec }, now) {
    if (typeof delta !== "string") return;
    this.reply.figures.delta(now, spec);
    if (delta !== "") this.reply.pieces.push({ text: delta, emitted: spec?.emitted ?? 0 });
    if (this.phase === "asking") this.phase = "replying";
  }

  #finish({ status, status_details: details, usage }) {
    this.reply.figures.finish(usage);
    if (status === "failed") {
      const why = details?.error?.message || "The server could not finish the reply; try again.";
      if (this.reply.pieces.length === 0) return this.#withdraw(why);
      this.#end("failed", "broken off");
      this.notice = { text: why, retry: true };
    } else if (status === "cancelled") this.#end("stopped", "stopped");
    else if (status === "incomplete") this.#end("cut", "length limit reached");
    else this.#end("done", this.reply.pieces.length === 0 ? "the model had nothing to say" : "");
    return [];
  }

  #fault({ message, event_id: about }) {
    if (this.#cancelIds.has(about)) return []; // the reply was over, or not there yet, when the cancel arrived
    const sentence = message || "The server reported an error without saying which; try again.";
    const refused = about ? this.#turnIds.has(about) : this.#responseId === null;
    if (this.busy && this.reply.pieces.length === 0 && refused) return this.#withdraw(sentence);
    this.notice = { text: sentence };
    return [];
  }

  #end(state, note) {
    this.reply.state = state;
    this.reply.note = note;
    this.phase = "idle";
    this.#responseId = null;
    this.#turnIds.clear();
  }

  // A turn that never began: the person's words go back to the composer, and a session that may hold them is left.
  #withdraw(sentence) {
    this.items.pop();
    const user = this.items.at(-1)?.role === "user" ? this.items.pop() : null;
    this.phase = "idle";
    this.notice = sentence === null ? null : { text: sentence };
    const restore = user === null ? [] : [{ do: "restore", text: user.pieces[0].text }];
    return [...restore, ...(this.#linked ? this.#renew() : [])];
  }
}
