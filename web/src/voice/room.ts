// The voice demo put together: the loop on a realtime link, ears and mouths of this browser, and what draws again when.

import { effect, type Signal, signal } from "@preact/signals";
import { drawSeed, type FormValues, isProblem, parse, samplingBody } from "../settings/parse";
import { Frames } from "../shell/frames";
import { News } from "../shell/news";
import { onWaking } from "../shell/waking";
import { PAGE_CLOCK } from "../wire/clock";
import type { Link } from "../wire/link";
import type { Server } from "../wire/server";
import { VoiceLoop } from "./loop";
import { Microphone } from "./microphone";
import { Mouth } from "./mouth";
import { optionsStore, type VoiceOptions } from "./options";
import { Reader } from "./reader";
import { BrowserRecognition, recogniserOf } from "./recognition";
import { Replay } from "./replay";
import type { Asking } from "./session";
import type { Speaker } from "./speech";
import { BrowserSynthesis } from "./synthesis";
import type { Script } from "./transcripts";

const SPOKEN =
  "What you write is spoken aloud. Answer in two or three short sentences, friendly and to the point, without lists, " +
  "headings, links or emoji.";

/** What replies are asked for with, from the settings of the page; a sentence where one of them is wrong. */
export function asking(values: FormValues): Asking | string {
  const settings = parse({ ...values, maxNodes: "" }, drawSeed); // trees are tuned for the chat
  if (isProblem(settings)) return settings.sentence;
  return {
    instructions: [SPOKEN, settings.instructions].filter((text) => text !== "").join("\n"),
    body: { ...samplingBody(settings), speculation: { mode: settings.speculation ? "auto" : "none" } },
  };
}

export class Room {
  readonly frames = new Frames();
  readonly options: Signal<VoiceOptions>;
  readonly loop: VoiceLoop;
  readonly replay: Replay;
  /** null: this browser does not recognise speech, or not on a page that came over an open network. */
  readonly microphone: Microphone | null;
  /** null: this browser does not speak. */
  readonly synthesis: SpeechSynthesis | null;
  readonly news = new News();
  /** What a screen reader is to say of the connection. */
  readonly spoken: Signal<string> = signal("");
  readonly #link: Link;
  readonly #server: Server;

  constructor(server: Server, settings: Signal<FormValues>, page: Window) {
    this.#server = server;
    this.options = optionsStore(page.navigator.language);
    this.#link = server.link({
      onEvent: (event) => this.loop.receive(event),
      onDown: () => this.loop.down(),
      onState: (state, sentence) => {
        this.spoken.value = this.news.change(state, sentence) || this.spoken.value;
        this.frames.now();
      },
    });
    this.synthesis = page.speechSynthesis ?? null;
    this.loop = new VoiceLoop({
      send: (event) => this.#link.send(event),
      renew: () => this.#link.renew(),
      asking: () => asking(settings.value),
      changed: () => {
        this.#link.expect(this.loop.running);
        this.replay.look();
        this.frames.mark();
      },
      voice: new Mouth(this.#speakers()),
      clock: PAGE_CLOCK,
    });
    this.replay = new Replay(this.loop, PAGE_CLOCK);
    const make = page.isSecureContext ? recogniserOf(page) : null;
    const recognition = make && new BrowserRecognition(make, PAGE_CLOCK.now);
    this.microphone = recognition && new Microphone(this.loop, recognition, PAGE_CLOCK);
  }

  /** Returns what ends everything again. */
  open(): () => void {
    this.#link.renew();
    const stopKeys = effect(() => {
      const key = this.#server.key.value;
      if (key === this.#link.key) return;
      this.loop.down(); // the new session gets everything again
      this.#link.key = key;
    });
    const stopWaking = onWaking(() => this.#link.check());
    return () => {
      stopWaking();
      stopKeys();
      this.replay.stop();
      this.microphone?.off();
      this.loop.close();
      this.#link.close();
    };
  }

  /** Whether the view can be seen: unseen nobody is heard or spoken to, and what was said is kept. */
  show(on: boolean): void {
    if (!on) {
      this.replay.stop();
      this.microphone?.off();
      this.loop.interrupt();
    }
    this.frames.rest(!on);
  }

  /** Ends a wait for the server early. */
  hurry(): void {
    this.#link.hurry();
  }

  play(script: Script): void {
    this.microphone?.off();
    this.replay.start(script);
    this.#link.hurry();
  }

  /** The talk button is down. */
  press(): void {
    this.replay.stop();
    this.microphone?.press(this.options.value.language);
    this.#link.hurry();
  }

  handsFree(on: boolean): void {
    this.replay.stop();
    this.microphone?.free(on, this.options.value.language);
    this.#link.hurry();
  }

  /** The reply is not wanted any more; a transcript that is played ends. */
  breakIn(): void {
    this.replay.stop();
    this.loop.interrupt();
  }

  /** The words that were heard are all. */
  endTurn(): void {
    this.replay.stop();
    this.microphone?.forget(); // whatever is heard from now on is of the next turn
    this.loop.endTurn();
  }

  /** The words are not wanted. */
  forget(): void {
    this.replay.stop();
    this.microphone?.forget();
    this.loop.forget();
  }

  clear(): void {
    this.replay.stop();
    this.microphone?.off();
    this.loop.clear();
  }

  #speakers(): () => Speaker {
    const reader = new Reader(PAGE_CLOCK, () => this.options.value.pace);
    const { synthesis } = this;
    if (!synthesis) return () => reader;
    const aloud = new BrowserSynthesis(
      synthesis,
      PAGE_CLOCK,
      reader,
      () => this.options.value,
      (sentence) => this.loop.tell(sentence),
    );
    return () => (this.options.value.aloud && synthesis.getVoices().length > 0 ? aloud : reader);
  }
}
