// The race's dealings with the world: its socket, the clock, and when the screen is drawn again.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { Frames } from "../shell/frames";
import { News } from "../shell/news";
import { askDrafters, draftersOf } from "../wire/drafters";
import type { Link } from "../wire/link";
import type { Server } from "../wire/server";
import { type Outcome, outcomeOf } from "./outcome";
import type { Plan } from "./plan";
import { type Effect, Race } from "./race";
import { Replay } from "./replay";
import { Results } from "./results";

/** What a race needs of the server. */
export type RaceServer = Pick<Server, "link" | "url" | "headers" | "model">;

export class Room {
  readonly frames = new Frames();
  readonly race = new Race();
  readonly results = new Results();
  /** The newest race that is done; null while another runs. */
  outcome: Outcome | null = null;
  replay: Replay | null = null;
  readonly running: ReadonlySignal<boolean> = computed(() => this.frames.tick.value >= 0 && this.race.running);
  readonly drafters: Signal<string[]> = signal(draftersOf(null));
  /** What a screen reader is to say while a race waits for its connection. */
  readonly spoken: Signal<string> = signal("");
  readonly #server: RaceServer;
  readonly #now: () => number;
  readonly #watched: () => boolean;
  #link: Link | null = null;
  #shown = true;

  /**
   * now: milliseconds; what all times of a race are counted by. watched: whether somebody may look at the page and has
   * nothing against motion; then a race that ends in sight is at once played side by side.
   */
  constructor(server: RaceServer, now: () => number = () => performance.now(), watched = () => false) {
    this.#server = server;
    this.#now = now;
    this.#watched = watched;
  }

  /** The server's drafters are asked for; away or locked, it is asked again with the next race. */
  async learn(): Promise<void> {
    this.drafters.value = (await askDrafters(this.#server)) ?? this.drafters.value;
  }

  start(plan: Plan): void {
    if (this.race.running) return;
    this.outcome = null;
    this.replay = null;
    this.#do(this.race.start(plan, this.results.next(plan)));
    this.frames.now();
  }

  stop(): void {
    this.#do(this.race.stop());
    this.frames.now();
  }

  /** Whether the view can be seen. A race runs on unseen, a replay waits for whoever watches it. */
  show(on: boolean): void {
    this.#shown = on;
    if (!on && this.moment()?.playing) this.toggle();
    this.frames.rest(!on);
  }

  /** The place of the replay in milliseconds, and whether it moves. */
  moment(): { at: number; playing: boolean } | null {
    const now = this.#now();
    return this.replay && { at: this.replay.at(now), playing: this.replay.playing(now) };
  }

  /** Plays, or pauses what plays. */
  toggle(): void {
    const now = this.#now();
    if (this.replay?.playing(now)) this.replay.pause(now);
    else this.replay?.play(now);
    this.frames.now();
  }

  seek(place: number): void {
    this.replay?.seek(place);
    this.frames.now();
  }

  pace(speed: number): void {
    this.replay?.pace(speed, this.#now());
    this.frames.now();
  }

  #do(effects: Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.#link?.send(effect.event);
      else if (effect.kind === "close") this.#link?.close();
      else this.#open();
    }
    this.#link?.expect(this.race.running);
    if (this.outcome === null) this.#judge();
    this.frames.mark();
  }

  #judge(): void {
    const outcome = outcomeOf(this.race);
    if (outcome === null) return;
    this.outcome = outcome;
    this.results.add(outcome);
    this.replay = new Replay(Math.max(outcome.total.plain, outcome.total.speculating));
    if (this.#shown && this.#watched()) this.replay.play(this.#now());
  }

  #open(): void {
    if (this.drafters.value.length === 1) void this.learn();
    const news = new News();
    this.spoken.value = "";
    this.#link = this.#server.link({
      onEvent: (event) => {
        if (event.session?.model) this.#server.model.value = event.session.model;
        this.#do(this.race.hear(event, this.#now()));
      },
      onDown: () => {}, // the state that follows says why
      onState: (state, sentence) => {
        const aloud = news.change(state, sentence);
        this.#do(this.race.link(state, sentence));
        if (aloud && this.race.running) this.spoken.value = aloud; // what ends a race is said with its verdict
      },
    });
    this.#link.renew();
  }
}
