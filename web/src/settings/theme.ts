// Light or dark by hand, whatever the system says.

import { effect, type Signal, signal } from "@preact/signals";
import { recall, remember } from "./storage";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const local = () => localStorage;

/** The remembered theme. It is put on `root`, at once and with every change. */
export function themeSignal(root: HTMLElement): Signal<Theme> {
  const stored = recall(local, "theme").theme;
  const theme = signal(THEMES.find((name) => name === stored) ?? "system");
  effect(() => {
    if (theme.value === "system") delete root.dataset.theme;
    else root.dataset.theme = theme.value;
    remember(local, "theme", { theme: theme.value });
  });
  return theme;
}
