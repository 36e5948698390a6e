// How the person wants to speak and be spoken to: remembered by this browser.

import { effect, type Signal, signal } from "@preact/signals";
import { recall, remember } from "../settings/storage";

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

const local = () => localStorage;
export const RATE = { low: 0.5, high: 2 };
export const PACE = { low: 60, high: 600 };

const within = (value: number, { low, high }: { low: number; high: number }, otherwise: number) =>
  Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : otherwise;

/** language: the browser's own, until another is chosen. */
export function optionsStore(language: string): Signal<VoiceOptions> {
  const defaults: VoiceOptions = { language, aloud: true, voice: "", rate: 1, pace: 170 };
  const stored = recall(local, "voice");
  const known = Object.entries(defaults).filter(([name, value]) => typeof stored[name] === typeof value);
  const options = signal({ ...defaults, ...Object.fromEntries(known.map(([name]) => [name, stored[name]])) });
  options.value.rate = within(options.value.rate, RATE, defaults.rate);
  options.value.pace = within(options.value.pace, PACE, defaults.pace);
  effect(() => remember(local, "voice", { ...options.value }));
  return options;
}

/** With some of them changed; a number that is out of bounds, or none, changes nothing. */
export function change(options: Signal<VoiceOptions>, some: Partial<VoiceOptions>): void {
  const { rate, pace } = options.value;
  const next = { ...options.value, ...some };
  options.value = { ...next, rate: within(next.rate, RATE, rate), pace: within(next.pace, PACE, pace) };
}
