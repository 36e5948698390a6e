// What a person is told of the connection: what to show, and what to say aloud once per outage.

import type { LinkState } from "../wire/link";

const CHIPS: Record<LinkState, string> = {
  connecting: "Connecting",
  open: "Connected",
  waiting: "Offline",
  locked: "Key needed",
};

export class News {
  state: LinkState = "connecting";
  /** Why it is not open; "" where there is nothing to explain. */
  sentence = "";
  #outcome: LinkState | null = null; // the last state that was not just a try

  /** A change of the connection. Returns what is to be said aloud; "" where nothing is. */
  change(state: LinkState, sentence: string): string {
    const before = this.state;
    this.state = state;
    if (state === "connecting" && before === "waiting") return ""; // the sentence stays until the try has an outcome
    this.sentence = sentence;
    if (state === "connecting" || state === this.#outcome) return ""; // the seconds of each further try are for the eye
    const again = this.#outcome === null ? "" : "Connected again.";
    this.#outcome = state;
    return sentence || again;
  }

  /** In a word or two; model: its name, "" while it is not known. */
  chip(model: string): string {
    return this.state === "open" && model ? model : CHIPS[this.state];
  }
}
