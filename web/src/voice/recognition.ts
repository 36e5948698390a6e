// The browser's speech recognition: its sessions end by themselves and are begun again, its results are joined to one
// text for each turn, and its errors become sentences.

import type { Ears, Recognition } from "./speech";

const SHORT_SESSION_MS = 1_000; // one that ends this soon heard nothing
const SHORT_SESSIONS = 5; // in a row: something is wrong that the browser does not tell

/** What is used of the Web Speech API's object, which not every browser's types have. */
export interface Recogniser {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: { results: ArrayLike<Result> }) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start(): void;
  stop(): void;
  abort(): void;
}

/** One phrase: its best transcript first. */
export type Result = ArrayLike<{ transcript: string }> & { isFinal: boolean };

const SENTENCES: ReadonlyMap<string, string> = new Map([
  ["not-allowed", "The browser may not use the microphone; allow it beside the address, then press again."],
  ["service-not-allowed", "This browser does not offer speech recognition here; type instead, or use another browser."],
  ["audio-capture", "No microphone was found; connect one, then press again."],
  ["network", "The browser cannot reach its recognition service; check the network, or type instead."],
  ["language-not-supported", "The browser does not recognise this language; choose another one."],
]);
const HARMLESS = new Set(["no-speech", "aborted"]);

/** How this browser makes a recogniser; null: it cannot. */
export function recogniserOf(page: object): (() => Recogniser) | null {
  const names = page as Record<string, (new () => Recogniser) | undefined>;
  const Kind = names.SpeechRecognition ?? names.webkitSpeechRecognition;
  return Kind ? () => new Kind() : null;
}

export class BrowserRecognition implements Recognition {
  readonly #make: () => Recogniser;
  readonly #now: () => number;
  #recogniser: Recogniser | null = null;
  #ears: Ears | null = null;
  #wanted = false;
  #short = 0;
  #before = ""; // what the turn had from sessions that ended
  #results: ArrayLike<Result> = [];
  #first = 0; // the turn's first result in the running session

  constructor(make: () => Recogniser, now: () => number) {
    this.#make = make;
    this.#now = now;
  }

  begin(language: string, ears: Ears): void {
    this.abort();
    this.#ears = ears;
    this.#wanted = true;
    this.#short = 0;
    this.#before = "";
    this.#start(language);
  }

  turn(): void {
    this.#before = "";
    this.#first = this.#results.length;
  }

  end(): void {
    this.#wanted = false;
    this.#recogniser?.stop();
  }

  abort(): void {
    const old = this.#recogniser;
    this.#recogniser = this.#ears = null;
    this.#wanted = false;
    old?.abort();
  }

  #start(language: string): void {
    const recogniser = this.#make();
    const began = this.#now();
    this.#recogniser = recogniser;
    this.#results = [];
    this.#first = 0;
    recogniser.lang = language;
    recogniser.continuous = true;
    recogniser.interimResults = true;
    recogniser.onresult = ({ results }) => {
      if (recogniser === this.#recogniser) this.#heard(results);
    };
    recogniser.onerror = ({ error }) => {
      if (recogniser === this.#recogniser && !HARMLESS.has(error)) this.#fail(SENTENCES.get(error) ?? unknown(error));
    };
    recogniser.onend = () => {
      if (recogniser === this.#recogniser) this.#ended(language, this.#now() - began);
    };
    try {
      recogniser.start();
    } catch {
      this.#fail("The browser could not begin to listen; press again, or type instead.");
      this.#ended(language, 0);
    }
  }

  #heard(results: ArrayLike<Result>): void {
    this.#results = results;
    const words = this.#words();
    if (words !== "") this.#ears?.onWords(words, results[results.length - 1]?.isFinal ?? false);
  }

  #words(): string {
    const phrases = Array.from(this.#results).slice(this.#first);
    const texts = [this.#before, ...phrases.map((phrase) => phrase[0]?.transcript ?? "")];
    return texts
      .map((text) => text.trim())
      .filter((text) => text !== "")
      .join(" ");
  }

  #fail(sentence: string): void {
    this.#wanted = false;
    this.#ears?.onProblem(sentence);
  }

  /** A session has ended, asked or not: browsers end one after some silence, or a minute. */
  #ended(language: string, ms: number): void {
    this.#short = ms < SHORT_SESSION_MS ? this.#short + 1 : 0;
    if (this.#wanted && this.#short >= SHORT_SESSIONS)
      this.#fail("The browser stops listening again and again; reload the page, or type instead.");
    if (this.#wanted) {
      this.#before = this.#words();
      this.#start(language);
      return;
    }
    const ears = this.#ears;
    this.#recogniser = this.#ears = null;
    ears?.onEnd();
  }
}

const unknown = (error: string) => `The browser could not listen (${error}); press again, or type instead.`;
