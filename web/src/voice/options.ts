// How the person wants to speak and be spoken to: remembered by this browser.

import type { Signal } from "@preact/signals";
import { remembered } from "../settings/store";

export interface VoiceOptions {
  /** What is recognised, such as "en-US". */
  language: string;
  /** Replies are spoken aloud where the browser has a voice; otherwise they are shown word by word. */
  aloud: boolean;
  /** A voice's URI; "": the browser's choice. */
  voice: string;
  /** 1: as the voice speaks by itself. */
  rate: number;
  /** Words per minute of replies without a sound, and of typed words. */
  pace: number;
}

/** For browsers whose own language is none. */
const LANGUAGE = "en-US";
const NAMES = new Intl.DisplayNames(undefined, { type: "language" });

/** What a language is called here; null where the code is none, such as the "en-US@posix" of some systems. */
export function languageName(code: string): string | null {
  if (code === "") return null; // which is the root of all languages
  try {
    return NAMES.of(code) ?? null;
  } catch {
    return null;
  }
}

export const RATE = { low: 0.5, high: 2 };
export const PACE = { low: 60, high: 600 };

const within = (value: number, { low, high }: { low: number; high: number }, otherwise: number) =>
  Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : otherwise;

/** language: the browser's own, until another is chosen. */
export function optionsStore(language: string): Signal<VoiceOptions> {
  const known = languageName(language) === null ? LANGUAGE : language;
  const defaults: VoiceOptions = { language: known, aloud: true, voice: "", rate: 1, pace: 170 };
  const options = remembered("voice", defaults);
  options.value = bounded(options.value, defaults);
  return options;
}

function bounded(options: VoiceOptions, otherwise: VoiceOptions): VoiceOptions {
  const rate = within(options.rate, RATE, otherwise.rate);
  const language = languageName(options.language) === null ? otherwise.language : options.language;
  return { ...options, language, rate, pace: within(options.pace, PACE, otherwise.pace) };
}

/** With some of them changed; what is out of bounds, or of no kind, changes nothing. */
export function change(options: Signal<VoiceOptions>, some: Partial<VoiceOptions>): void {
  options.value = bounded({ ...options.value, ...some }, options.value);
}
