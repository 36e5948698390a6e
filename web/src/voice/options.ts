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

export const RATE = { low: 0.5, high: 2 };
export const PACE = { low: 60, high: 600 };

const within = (value: number, { low, high }: { low: number; high: number }, otherwise: number) =>
  Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : otherwise;

/** language: the browser's own, until another is chosen. */
export function optionsStore(language: string): Signal<VoiceOptions> {
  const defaults: VoiceOptions = { language, aloud: true, voice: "", rate: 1, pace: 170 };
  const options = remembered("voice", defaults);
  options.value = bounded(options.value, defaults);
  return options;
}

function bounded(options: VoiceOptions, otherwise: VoiceOptions): VoiceOptions {
  const rate = within(options.rate, RATE, otherwise.rate);
  return { ...options, rate, pace: within(options.pace, PACE, otherwise.pace) };
}

/** With some of them changed; a number that is out of bounds, or none, changes nothing. */
export function change(options: Signal<VoiceOptions>, some: Partial<VoiceOptions>): void {
  options.value = bounded({ ...options.value, ...some }, options.value);
}
