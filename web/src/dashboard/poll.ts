// Asking the server for its figures once a second, and saying in a sentence why there are none.

import { backoff } from "../wire/backoff";
import { type Clock, PAGE_CLOCK } from "../wire/clock";
import { NEEDS_KEY, noAnswerReason, ODD_KEY, refusalReason, tryingAgain, WRONG_KEY } from "../wire/closing";
import { type Family, parse } from "./prometheus";

const EVERY_MS = 1000;
const PATIENCE_MS = 5000;
const FOREIGN = "What answers here does not tell Paceline's figures; check the proxy in front of it";

/** resting: not started. locked: a key is missing or wrong, and nothing is asked until `start` is called again. */
export type PollState = "resting" | "opening" | "live" | "waiting" | "locked";

type Answer =
  | { kind: "figures"; text: string; date: string | null }
  | { kind: "locked"; sentence: string }
  | { kind: "failed"; clause: string };

export interface PollOptions {
  url: string;
  /** Asked for before each request. */
  headers: () => Record<string, string>;
  /** serverNow: seconds since 1970 by the server's clock, to the second; null where it does not tell. */
  onFigures(families: Map<string, Family>, serverNow: number | null): void;
  /** sentence: what is wrong and what to do; "" where nothing is. */
  onState(state: PollState, sentence: string): void;
}

/** The browser's own things, which tests replace. */
export interface Outside {
  fetch: typeof fetch;
  clock: Pick<Clock, "after">;
  random(): number;
}

const BROWSER: Outside = {
  fetch: (...args) => fetch(...args),
  clock: PAGE_CLOCK,
  random: Math.random,
};

export class Poller {
  readonly #options: PollOptions;
  readonly #outside: Outside;
  #asking: AbortController | null = null;
  #endWait = () => {};
  #attempt = 0;

  constructor(options: PollOptions, outside: Partial<Outside> = {}) {
    this.#options = options;
    this.#outside = { ...BROWSER, ...outside };
  }

  /** Asks at once, and then once a second. */
  start(): void {
    this.#end();
    this.#attempt = 0;
    this.#options.onState("opening", "");
    void this.#ask();
  }

  /** No request is under way afterwards. */
  stop(): void {
    this.#end();
    this.#options.onState("resting", "");
  }

  #end(): void {
    this.#endWait();
    this.#asking?.abort();
    this.#asking = null;
  }

  async #ask(): Promise<void> {
    const asking = new AbortController();
    this.#asking = asking;
    const endPatience = this.#outside.clock.after(PATIENCE_MS, () => asking.abort());
    const answer = await this.#answer(asking.signal);
    endPatience();
    if (this.#asking !== asking) return; // stopped or started anew meanwhile
    if (answer.kind === "figures") this.#heard(answer.text, answer.date);
    else if (answer.kind === "locked") this.#options.onState("locked", answer.sentence);
    else this.#wait(answer.clause);
  }

  async #answer(signal: AbortSignal): Promise<Answer> {
    const sent = this.#options.headers();
    let headers: Headers;
    try {
      headers = new Headers(sent);
    } catch {
      return { kind: "locked", sentence: ODD_KEY };
    }
    try {
      const answer = await this.#outside.fetch(this.#options.url, { headers, signal, cache: "no-store" });
      if (answer.status === 401)
        return { kind: "locked", sentence: headers.has("authorization") ? WRONG_KEY : NEEDS_KEY };
      if (!answer.ok) return { kind: "failed", clause: await refusalReason(answer) };
      return { kind: "figures", text: await answer.text(), date: answer.headers.get("date") };
    } catch {
      return { kind: "failed", clause: noAnswerReason(signal) };
    }
  }

  #heard(text: string, date: string | null): void {
    const families = ours(text);
    if (families === null) {
      this.#wait(FOREIGN);
      return;
    }
    this.#attempt = 0;
    this.#options.onState("live", "");
    const now = Date.parse(date ?? "") / 1000;
    this.#options.onFigures(families, Number.isNaN(now) ? null : now);
    this.#again(EVERY_MS);
  }

  #wait(reason: string): void {
    const ms = Math.max(EVERY_MS, backoff(this.#attempt, this.#outside.random));
    this.#attempt += 1;
    this.#options.onState("waiting", tryingAgain(reason, ms));
    this.#again(ms);
  }

  #again(ms: number): void {
    this.#endWait = this.#outside.clock.after(ms, () => void this.#ask());
  }
}

/** null: it is no exposition, or that of something else. */
function ours(text: string): Map<string, Family> | null {
  try {
    const families = parse(text);
    return [...families.keys()].some((name) => name.startsWith("paceline_")) ? families : null;
  } catch {
    return null;
  }
}
