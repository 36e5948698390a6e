// Tokens over time, drawn. Fetched when there is something to draw.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { AXIS, keep, series } from "../shell/canvas";
import type { LaneName } from "./plan";
import { STROKES } from "./strokes";

const HEIGHT = 180; // CSS pixels

export type Curves = Record<LaneName, [seconds: number[], tokens: number[]]>;

export class Chart {
  readonly #plot: uPlot;
  /** Takes it from the page. */
  readonly end: () => void;

  constructor(place: HTMLElement, curves: Curves) {
    const lines = [curves.plain, curves.speculating];
    this.#plot = new uPlot(options(place.clientWidth), uPlot.join(lines), place);
    this.end = keep(this.#plot, place);
  }

  /** Marks a moment, in seconds. */
  moment(seconds: number): void {
    this.#plot.setCursor({ left: this.#plot.valToPos(seconds, "x"), top: 0 }, false);
  }
}

function options(width: number): uPlot.Options {
  const line = (name: LaneName): uPlot.Series => ({
    ...series(name, STROKES[name]),
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
