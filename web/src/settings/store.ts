// The settings of this browser: one signal, remembered between visits.

import { effect, type Signal, signal } from "@preact/signals";
import type { FormValues } from "./parse";
import { recall, remember } from "./storage";

const DEFAULTS: FormValues = {
  instructions: "",
  temperature: "0.2",
  seed: "",
  maxTokens: "",
  topP: "",
  topK: "",
  minP: "",
  repetitionPenalty: "",
  speculation: true,
};

const local = () => localStorage;

/** Remembered values of the right type over the defaults; changes are remembered as they happen. */
export function settingsStore(): Signal<FormValues> {
  const stored = recall(local, "settings");
  const known = Object.entries(DEFAULTS).filter(([name, value]) => typeof stored[name] === typeof value);
  const values = signal({ ...DEFAULTS, ...Object.fromEntries(known.map(([name]) => [name, stored[name]])) });
  effect(() => remember(local, "settings", { ...values.value }));
  return values;
}
