// Plays timed transcripts to the loop, as if somebody spoke.

import type { Clock } from "../wire/clock";
import type { VoiceLoop } from "./loop";
import type { Script, SpokenTurn } from "./transcripts";

const END_OF_TURN_MS = 500; // of silence
const BETWEEN_TURNS_MS = 700;

const wordsIn = (text: string) => text.match(/\S+/g)?.length ?? 0;

export class Replay {
  /** What is played; null: nothing. */
  script: Script | null = null;
  readonly #loop: VoiceLoop;
  readonly #clock: Clock;
  #next: SpokenTurn[] = [];
  #waits = false; // for the moment when the next turn begins
  #cancels: (() => void)[] = [];

  constructor(loop: VoiceLoop, clock: Clock) {
    this.#loop = loop;
    this.#clock = clock;
  }

  start(script: Script): void {
    this.stop();
    const [first, ...rest] = script.turns;
    if (!first) return;
    this.script = script;
    this.#next = rest;
    this.#speak(first, 0);
    this.#loop.attend(true);
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel();
    this.#cancels = [];
    this.#waits = false;
    if (this.script === null) return;
    this.script = null;
    this.#loop.attend(false);
  }

  /** Something in the loop has changed. */
  look(): void {
    if (!this.#waits) return;
    const { state, reply, notice } = this.#loop;
    const [next, ...rest] = this.#next;
    const busy = state === "thinking" || state === "speaking" || state === "interrupted";
    const breaksIn = next?.breaksInAfter != null && wordsIn(reply?.heardText ?? "") >= next.breaksInAfter;
    if (busy && !breaksIn) return;
    if (!next || notice !== "") {
      this.stop(); // played to its end, or something went wrong
      return;
    }
    this.#waits = false;
    this.#next = rest;
    this.#speak(next, busy ? 0 : BETWEEN_TURNS_MS);
  }

  #speak({ partials }: SpokenTurn, after: number): void {
    const last = partials.at(-1)?.at ?? 0;
    this.#cancels = partials.map(({ at, text }) => this.#clock.after(after + at, () => this.#loop.hear(text)));
    const end = () => {
      this.#waits = true;
      this.#loop.endTurn();
    };
    this.#cancels.push(this.#clock.after(after + last + END_OF_TURN_MS, end));
  }
}
