// What the dashboard knows, and what the person chose to look at.

import { type Signal, signal } from "@preact/signals";
import { News } from "../shell/news";
import type { LinkState } from "../wire/link";
import { History } from "./history";
import { Poller, type PollState } from "./poll";
import type { Family } from "./prometheus";
import { Span } from "./span";

const NOW_S = 5; // what "now" means for a rate: long enough for a steady figure

/** What a state of the poller is to whoever waits for a connection. */
const LINK: Partial<Record<PollState, LinkState>> = {
  opening: "connecting",
  live: "open",
  waiting: "waiting",
  locked: "locked",
};

/** The lengths of time to look back over, in minutes. */
export const WINDOWS = [1, 5, 15, 60] as const;

export interface BoardOptions {
  url: string;
  headers: () => Record<string, string>;
  /** Seconds since 1970, by a clock that never goes back. */
  now: () => number;
}

export class Board {
  readonly history = new History();
  readonly state: Signal<PollState> = signal<PollState>("resting");
  /** What is wrong and what to do; "" where nothing is. */
  readonly sentence: Signal<string> = signal("");
  /** What a screen reader is to say of it. */
  readonly spoken: Signal<string> = signal("");
  /** Counts up with each scrape. */
  readonly tick: Signal<number> = signal(0);
  readonly minutes: Signal<number> = signal(5);
  readonly poller: Poller;

  constructor({ url, headers, now }: BoardOptions) {
    const news = new News();
    this.poller = new Poller({
      url,
      headers,
      onFigures: (families, serverNow) => this.#push(now(), families, serverNow),
      onState: (state, sentence) => {
        this.state.value = state;
        this.sentence.value = sentence;
        const link = LINK[state];
        if (link) this.spoken.value = news.change(link, sentence) || this.spoken.value;
      },
    });
  }

  /** null before the first scrape. */
  spans(): Spans | null {
    const { newest, start } = this.history;
    if (newest === undefined) return null;
    const recent = this.history.since(this.minutes.value * 60);
    return {
      now: new Span(this.history, this.history.before(NOW_S), newest),
      recent: new Span(this.history, recent, newest),
      always: new Span(this.history, start, newest),
    };
  }

  #push(at: number, families: Map<string, Family>, serverNow: number | null): void {
    this.history.push(at, families, serverNow ?? at);
    this.tick.value += 1;
  }
}

/** The stretches of time that figures are told of. */
export interface Spans {
  /** The last seconds. */
  now: Span;
  /** As long as the person chose to look back. */
  recent: Span;
  /** Since the server was started. */
  always: Span;
}
