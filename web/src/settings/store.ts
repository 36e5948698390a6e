// The settings of this browser: one signal, remembered between visits.

import { effect, type Signal, signal } from "@preact/signals";
import type { FormValues } from "./parse";
import { recall, remember } from "./storage";

/** The form before anybody wrote into it. */
export const DEFAULTS: FormValues = {
  instructions: "",
  temperature: "0.2",
  seed: "",
  maxTokens: "1024", // a small model may go round in circles; who wants more can go on
  topP: "",
  topK: "",
  minP: "",
  repetitionPenalty: "",
  speculation: true,
  drafter: "",
  maxNodes: "",
};

const local = () => localStorage;

/** Remembered values of the right type over the defaults; changes are remembered as they happen. */
export function remembered<T extends object>(name: string, defaults: T): Signal<T> {
  const stored = recall(local, name);
  const known = Object.entries(defaults).filter(([field, value]) => typeof stored[field] === typeof value);
  const values = signal({ ...defaults, ...Object.fromEntries(known.map(([field]) => [field, stored[field]])) });
  effect(() => remember(local, name, { ...values.value }));
  return values;
}

export function settingsStore(): Signal<FormValues> {
  return remembered("settings", DEFAULTS);
}
