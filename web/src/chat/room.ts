// Wiring: the person's actions and the server's events go to the conversation, its effects go to the socket and back.

import { type Signal, signal } from "@preact/signals";
import { drawSeed, type FormValues, isProblem, type Problem, parse, type Settings } from "../settings/parse";
import { recall, remember } from "../settings/storage";
import { Frames } from "../shell/frames";
import { News } from "../shell/news";
import { onWaking } from "../shell/waking";
import { TAKEN_UP } from "../wire/closing";
import type { Link } from "../wire/link";
import type { Server } from "../wire/server";
import { Conversation } from "./conversation";
import type { Effect } from "./outcome";
import { Records } from "./records";
import { LONG_PROMPT, tooLong } from "./requests";
import type { Saying } from "./spoken";
import { forgetSteps, type Turn } from "./turns";

const STOP_PATIENCE_MS = 5_000; // a stop takes one verify step; after this the session is left behind
const STORE_PATIENCE_MS = 2_000; // browsers' stores have been known to never answer; what comes later is still shown
const TYPING_PAUSE_MS = 80;
const local = () => localStorage;
const session = () => sessionStorage;

/** What the chat needs of the server. */
export type ChatServer = Pick<Server, "link" | "setKey">;

export class Room {
  readonly conversation = new Conversation();
  readonly news = new News();
  readonly records: Records;
  readonly frames = new Frames();
  /** Counts up with everything but growing text: whoever reads it draws the turns anew. */
  readonly shape: Signal<number> = signal(0);
  /** What a screen reader is to say. */
  readonly saying: Signal<Saying> = signal({ serial: 0, text: "", reply: null });
  /** The composer's text. */
  readonly draft: Signal<string>;
  /** Somebody wants to send what the composer holds, while a reply is still on its way. */
  readonly early: Signal<boolean> = signal(false);
  /** A slip in the settings, to be shown beside its field. */
  readonly problem: Signal<Problem | null> = signal(null);
  /** The key of the turn that is being edited. */
  readonly editing: Signal<number | null> = signal(null);
  /** The key of the reply whose steps are looked at; null: the newest. */
  readonly looked: Signal<number | null> = signal(null);
  readonly #link: Link;
  readonly #server: ChatServer;
  readonly #values: Signal<FormValues>;
  #patience = 0;
  #typing = 0;
  #speaking: Turn | null = null; // a reply that is said when it is over

  constructor(server: ChatServer, values: Signal<FormValues>) {
    this.#server = server;
    this.#values = values;
    const drafts = [session, local].map((storage) => recall(storage, "draft").text); // this tab's, or the newest
    this.draft = signal(drafts.find((text) => typeof text === "string") ?? "");
    this.records = new Records({
      turns: () => this.conversation.turns,
      busy: () => this.conversation.busy,
      editing: () => this.conversation.turns.some(({ key }) => key === this.editing.value),
      elsewhere: () => this.conversation.elsewhere,
      show: (turns, running) => this.#act(() => this.conversation.load(turns, running)),
    });
    this.editing.subscribe(() => this.records.changed());
    this.#link = server.link({
      onEvent: (event) => {
        this.#act((now) => this.conversation.receive(event, now));
        if (event.type === "session.created") this.#typed();
      },
      onDown: (code) => (code === TAKEN_UP ? this.#giveWay() : this.#down()),
      onState: (state, sentence) => {
        const aloud = this.news.change(state, sentence);
        if (aloud) this.aloud(aloud);
        this.shape.value += 1;
      },
    });
  }

  /** Connects, once what was open before a reload is there again. */
  async start(): Promise<void> {
    const patience = new Promise((resolve) => setTimeout(resolve, STORE_PATIENCE_MS));
    await Promise.race([this.records.start(), patience]);
    this.#link.renew();
    onWaking(() => this.#link.check());
    addEventListener("pagehide", () => {
      this.records.now();
      this.#setDraft(this.draft.value); // the pause after the last letter may not be over
    });
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.records.now();
    });
  }

  /** A try to connect now instead of later. */
  hurry(): void {
    this.#link.hurry();
  }

  setKey(key: string): void {
    this.#server.setKey(key);
    this.#down(); // the new session gets everything again
    this.#link.key = key;
  }

  /** The composer's text is now `text`. */
  write(text: string): void {
    this.draft.value = text;
    this.#typing ||= window.setTimeout(() => this.#typed(), TYPING_PAUSE_MS);
  }

  /** Sends what the composer holds. */
  say(): void {
    const text = this.draft.value;
    if (text.trim() === "") return;
    this.early.value = this.conversation.busy;
    if (this.early.value) return;
    const settings = this.#settings();
    if (!settings) return;
    this.#setDraft("");
    this.#act((now) => this.conversation.say(text, settings, now));
    this.hurry();
  }

  /** Sends a prompt that is offered; what the composer holds stays there. */
  ask(text: string): void {
    const draft = this.draft.value;
    this.write(text);
    this.say();
    if (draft.trim() !== "") this.write(draft);
  }

  /** Sends an edited turn; until that could be done its words stay where they were edited. */
  edit(turn: Turn, text: string): void {
    if (this.conversation.busy) {
      this.tell("A reply is on its way; wait for its end or stop it, then send the turn again.");
      return;
    }
    const settings = this.#settings();
    if (settings) this.#act((now) => this.conversation.edit(turn.key, text, settings, now));
    if (this.conversation.busy) this.editing.value = null;
  }

  retry(): void {
    const settings = this.#settings();
    if (settings) this.#act((now) => this.conversation.retry(settings, now));
  }

  /** Of a reply that ended too soon: asks for the rest. */
  goOn(): void {
    const settings = this.#settings();
    if (settings) this.#act((now) => this.conversation.say("Please go on.", settings, now));
  }

  stop(): void {
    this.#act(() => this.conversation.stop());
  }

  undo(): void {
    this.#act(() => this.conversation.undo());
  }

  dismiss(): void {
    this.#act(() => {
      this.conversation.notice = null;
      return [];
    });
  }

  /** An empty conversation; the open one is kept. */
  fresh(): void {
    const { conversation } = this;
    this.editing.value = null;
    this.looked.value = null;
    this.#speaking = null;
    if (conversation.busy) this.#act(() => conversation.load(conversation.turns)); // stopped, and kept so
    this.records.now();
    this.#act(() => conversation.load([]));
    this.records.fresh();
  }

  async open(id: string): Promise<void> {
    if (id === this.records.shelf.id) return;
    this.fresh();
    await this.records.open(id);
  }

  async remove(id: string): Promise<void> {
    if (id === this.records.shelf.id) this.fresh();
    await this.records.shelf.remove(id);
  }

  /** Has a screen reader say `text`, and before it the reply that has ended. */
  aloud(text: string, reply: Turn | null = null): void {
    this.saying.value = { serial: this.saying.value.serial + 1, text, reply };
  }

  tell(sentence: string): void {
    this.#act(() => {
      this.conversation.notice = { text: sentence };
      return [];
    });
  }

  /** The reply whose steps are shown. */
  get shown(): Turn | null {
    const { turns, reply } = this.conversation;
    return turns.find(({ key }) => key === this.looked.value) ?? reply;
  }

  #down(): void {
    this.#act(() => {
      this.conversation.down();
      return [];
    });
  }

  #giveWay(): void {
    this.#act(() => {
      this.conversation.giveWay();
      return [];
    });
    this.records.giveWay();
  }

  #setDraft(text: string): void {
    this.draft.value = text;
    clearTimeout(this.#typing);
    this.#typing = 0;
    for (const storage of [session, local]) remember(storage, "draft", { text });
  }

  #typed(): void {
    this.#setDraft(this.draft.value);
    this.#act(() => this.conversation.type(this.draft.value, this.#values.value.instructions.trim()));
  }

  #settings(): Settings | null {
    const parsed = parse(this.#values.value, drawSeed);
    const long = !isProblem(parsed) && tooLong(parsed.instructions);
    const checked: Settings | Problem = long ? { field: "instructions", sentence: LONG_PROMPT } : parsed;
    this.problem.value = isProblem(checked) ? checked : null;
    return isProblem(checked) ? null : checked;
  }

  #act(what: (now: number) => Effect[]): void {
    const { conversation } = this;
    const state = () => [conversation.phase, conversation.turns, conversation.turns.length, conversation.notice];
    const before = [...state(), conversation.model];
    for (const effect of what(performance.now())) {
      if (effect.do === "send") this.#link.send(effect.event);
      else if (effect.do === "restore") this.#restore(effect.text);
      else if (this.news.state !== "connecting") this.#link.renew(); // else a session that has nothing is on its way
    }
    this.#link.expect(conversation.busy);
    this.early.value &&= conversation.busy;
    this.#wait();
    this.records.changed();
    if ([...state(), conversation.model].every((value, i) => value === before[i])) {
      this.frames.mark();
      return;
    }
    this.#speak();
    forgetSteps(conversation.turns, this.looked.value);
    this.shape.value += 1; // buttons change with the press that causes it
    this.frames.now();
  }

  #restore(text: string): void {
    this.#setDraft(this.draft.value === "" ? text : `${text}\n${this.draft.value}`);
  }

  // A stop that is not confirmed in time is over all the same.
  #wait(): void {
    if (this.conversation.phase !== "stopping") {
      clearTimeout(this.#patience);
      this.#patience = 0;
    } else this.#patience ||= window.setTimeout(() => this.#act(() => this.conversation.giveUp()), STOP_PATIENCE_MS);
  }

  // A reply is said once, whole, when it is over: a live region that grew with every token would never be quiet.
  #speak(): void {
    const { busy, reply } = this.conversation;
    if (busy) this.#speaking = reply;
    else if (this.#speaking) {
      this.aloud(this.#speaking.note, this.conversation.elsewhere ? null : this.#speaking);
      this.#speaking = null;
    }
  }
}
