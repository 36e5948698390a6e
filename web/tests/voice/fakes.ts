// A clock that is moved by hand, a voice that speaks when told to, and a loop between them and a recorded session.

import { VoiceLoop } from "../../src/voice/loop";
import type { Asking } from "../../src/voice/session";
import type { Progress, Voice } from "../../src/voice/speech";
import type { Clock } from "../../src/wire/clock";
import type { ClientEvent } from "../../src/wire/events";

export class HandClock implements Clock {
  time = 0;
  #waiting: { at: number; what: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(ms: number, what: () => void): () => void {
    const entry = { at: this.time + ms, what };
    this.#waiting.push(entry);
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== entry);
    };
  }

  /** Lets time pass, and everything happen that was due meanwhile. */
  pass(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const next = this.#waiting.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#waiting = this.#waiting.filter((other) => other !== next);
      this.time = next.at;
      next.what();
    }
    this.time = end;
  }
}

export class HandVoice implements Voice {
  queue: { clause: string; progress: Progress }[] = [];
  readonly said: string[] = [];
  stops = 0;

  speak(clause: string, progress: Progress): void {
    this.queue.push({ clause, progress });
    this.said.push(clause);
  }

  stop(): void {
    this.queue = [];
    this.stops += 1;
  }

  /** The running clause has been spoken but for what follows its first `codePoints`. */
  word(codePoints: number): void {
    this.queue[0]?.progress.started();
    this.queue[0]?.progress.word(codePoints);
  }

  /** The running clause has been spoken. */
  finish(): void {
    const running = this.queue.shift();
    running?.progress.started();
    running?.progress.finished();
  }
}

export class Stage {
  readonly clock = new HandClock();
  readonly voice = new HandVoice();
  readonly loop: VoiceLoop;
  asking: Asking | string = { instructions: "Be brief.", body: { temperature: 0.2 } };
  renewed = 0;
  /** What went out since it was last taken. */
  #sent: ClientEvent[] = [];

  constructor() {
    this.loop = new VoiceLoop({
      send: (event) => this.#sent.push(event),
      renew: () => {
        this.renewed += 1;
      },
      asking: () => this.asking,
      changed: () => {},
      voice: this.voice,
      clock: this.clock,
    });
  }

  /** Events since the last call, without their ids. */
  take(): Record<string, unknown>[] {
    const events = this.#sent.map(({ event_id: _, ...event }) => event);
    this.#sent = [];
    return events;
  }

  types(): string[] {
    return this.take().map(({ type }) => String(type));
  }

  /** The id of the newest event of this type that is not taken yet. */
  idOf(type: string): string {
    return this.#sent.findLast((event) => event.type === type)?.event_id ?? "";
  }

  server(type: string, fields: Record<string, unknown> = {}): void {
    this.loop.receive({ type, ...fields });
  }

  /** A session, and nothing sent that is not taken. */
  up(): this {
    this.server("session.created");
    this.take();
    return this;
  }

  /** A turn that was heard and ended. */
  ask(words = "How far is the moon?"): this {
    this.loop.hear(words);
    this.loop.endTurn();
    this.server("input_text.committed", { item_id: "user_1" });
    return this;
  }

  /** Text of the reply with the ends of its clauses. */
  say(text: string, ...ends: number[]): this {
    this.server("response.output_item.added", { item: { id: "reply_1" } });
    this.server("response.output_text.delta", { delta: text });
    for (const end of ends) this.server("x_response.clause", { end });
    return this;
  }

  done(status = "completed", more: Record<string, unknown> = {}): this {
    this.server("response.done", { response: { status, ...more } });
    return this;
  }

  get lines(): string[] {
    return this.loop.conversation.lines.map(({ role, text, cut }) => `${role}: ${text}${cut ? " |" : ""}`);
  }
}

/** What the model answers. */
export const REPLY = "It is far. Very far.";

/** The event that keeps the first `end` code points of it. */
export const truncate = (end: number) => ({
  type: "conversation.item.truncate",
  item_id: "reply_1",
  content_index: 0,
  x_text_end: end,
});

/** Writes what is told of a clause into a log. */
export function noted(log: string[], name: string): Progress {
  return {
    started: () => log.push(`${name} starts`),
    word: (codePoints) => log.push(`${name} ${codePoints}`),
    finished: () => log.push(`${name} ends`),
  };
}
