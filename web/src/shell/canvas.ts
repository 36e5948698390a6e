// The page's looks for what is drawn on a canvas, which styles do not reach.

import type uPlot from "uplot";

/** token: a custom property of the page's style, such as "--line". */
export function colour(token: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(token).trim();
}

/** Calls `changed` when light turns to dark or back, by the system or by hand. Returns what ends that. */
export function onThemeChange(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", changed);
    chosen.disconnect();
  };
}

/** An axis of a plot, in the colours that hold when it is drawn. */
export const AXIS: uPlot.Axis = {
  stroke: () => colour("--quiet"),
  font: "12px system-ui, sans-serif",
  grid: { stroke: () => colour("--line"), width: 1 },
  ticks: { show: false },
};
