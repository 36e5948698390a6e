// The key that opens the server: forgotten with the tab.

import { effect, type Signal, signal } from "@preact/signals";
import { recall, remember } from "./storage";

const session = () => sessionStorage;

/** The remembered key, "" for none; changes are remembered as they happen. */
export function keySignal(): Signal<string> {
  const stored = recall(session, "key").key;
  const key = signal(typeof stored === "string" ? stored : "");
  effect(() => remember(session, "key", { key: key.value }));
  return key;
}
