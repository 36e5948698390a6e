// The page's looks for what is drawn on a canvas, which styles do not reach.

import type uPlot from "uplot";

/** token: a custom property of the page's style, such as "--line". It is told as it is written, which may be one colour
 * for light and one for dark; only the colour of an element says which of them holds. */
export function colour(token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Calls `changed` when light turns to dark or back, by the system or by hand. Returns what ends that. */
function onThemeChange(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", changed);
    chosen.disconnect();
  };
}

/** How a line is drawn: a colour token of the page's style, and a pattern of dashes in pixels ([]: solid). */
export interface Stroke {
  readonly token: string;
  readonly dash: readonly number[];
}

/** A line of a plot, in the colour that holds when it is drawn. */
export function series(label: string, { token, dash }: Stroke): uPlot.Series {
  return { label, stroke: () => colour(token), dash: [...dash], width: 2, points: { show: false } };
}

/** Keeps a plot as wide as what it stands in, and in the colours that hold. Returns what ends that and the plot. */
export function keep(plot: uPlot, place: HTMLElement): () => void {
  const sizes = new ResizeObserver(() => {
    const width = place.clientWidth; // 0: its view is hidden
    if (width > 0) plot.setSize({ width, height: plot.height });
  });
  sizes.observe(place);
  const forget = onThemeChange(() => plot.redraw(false, true));
  return () => {
    forget();
    sizes.disconnect();
    plot.destroy();
  };
}

/** An axis of a plot, in the colours that hold when it is drawn. */
export const AXIS: uPlot.Axis = {
  stroke: () => colour("--quiet"),
  font: "12px system-ui, sans-serif",
  grid: { stroke: () => colour("--line"), width: 1 },
  ticks: { show: false },
};
