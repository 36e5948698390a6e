// Tokens over time, drawn. Fetched when there is something to draw.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { AXIS, colour } from "../shell/canvas";
import type { LaneName } from "./plan";

const HEIGHT = 180; // CSS pixels

/** How each lane is drawn: a colour token of the page's style, and a pattern of dashes in pixels. */
export const STROKES: Record<LaneName, { token: string; dash: number[] }> = {
  plain: { token: "--origin-suffix", dash: [6, 4] },
  speculating: { token: "--accent", dash: [] },
};

export type Curves = Record<LaneName, [seconds: number[], tokens: number[]]>;

export class Chart {
  readonly #plot: uPlot;

  constructor(place: HTMLElement, curves: Curves) {
    const lines = [curves.plain, curves.speculating];
    this.#plot = new uPlot(options(place.clientWidth), uPlot.join(lines), place);
    this.moment(null);
  }

  /** Marks a moment, in seconds; null: none. */
  moment(seconds: number | null): void {
    const left = seconds === null ? -10 : this.#plot.valToPos(seconds, "x"); // out of sight
    this.#plot.setCursor({ left, top: 0 }, false);
  }

  resize(width: number): void {
    this.#plot.setSize({ width, height: HEIGHT });
  }

  /** In the colours that hold now. */
  redraw(): void {
    this.#plot.redraw(false, true);
  }

  end(): void {
    this.#plot.destroy();
  }
}

function options(width: number): uPlot.Options {
  const line = (name: LaneName): uPlot.Series => ({
    label: name,
    stroke: () => colour(STROKES[name].token),
    dash: STROKES[name].dash,
    width: 2,
    points: { show: false },
    spanGaps: true, // a lane has no value at the other's moments
    ...(uPlot.paths.stepped && { paths: uPlot.paths.stepped({ align: 1 }) }),
  });
  const deaf = () => null; // the mark follows the replay, not the pointer
  return {
    width,
    height: HEIGHT,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: false, y: false },
      bind: { mousemove: deaf, mouseenter: deaf, mouseleave: deaf, mousedown: deaf, dblclick: deaf },
    },
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] } },
    axes: [
      { ...AXIS, size: 28, space: 56, values: (_, marks) => marks.map((mark) => `${mark} s`) },
      { ...AXIS, size: 44, space: 32 },
    ],
    series: [{}, line("plain"), line("speculating")],
  };
}
