// One plot: the lines on a canvas, and a table under it that is legend and text alternative in one.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { AXIS, colour, keep, series } from "../shell/canvas";
import { Swatch } from "../shell/swatch";
import type { Row } from "./history";
import { type Curve, type Plot, rangeOf } from "./plots";
import { extremes } from "./series";

const HEIGHT = 150; // CSS pixels
const MARKS_S = [15, 60, 300, 900];

export interface ChartProps {
  plot: Plot;
  curves: readonly Curve[];
  rows: readonly Row[];
  /** How far the time axis reaches back. */
  seconds: number;
  /** Said where nothing is drawn. */
  note: string;
}

export function Chart({ plot, curves, rows, seconds, note }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawing = useRef<uPlot | null>(null);
  const names = curves.map(({ name }) => name).join();
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const drawn = new uPlot(options(plot, curves, element.clientWidth), [[]], element);
    drawing.current = drawn;
    const end = keep(drawn, element);
    return () => {
      end();
      drawing.current = null;
    };
  }, [plot, names]);
  useEffect(() => {
    const now = rows.at(-1)?.at ?? 0;
    const lines = curves.map(({ drawn }) => drawn);
    drawing.current?.batch((drawn: uPlot) => {
      drawn.setData([rows.map(({ at }) => at - now), ...inOrder(plot, lines)], false);
      drawn.setScale("x", { min: -seconds, max: 0 });
    });
  });
  const told = curves.map(({ name, stroke, values }) => ({ name, stroke, ...extremes(values) }));
  const summary = told.map(({ name, last }) => `${name} ${plot.format(last)}`).join(", ");
  return (
    <figure class="dashboard-card" data-plot={plot.id}>
      <figcaption>
        <h3>{plot.title}</h3>
        <span class="dashboard-note">{plot.unit}</span>
      </figcaption>
      <div class="dashboard-time">
        <div
          ref={place}
          class="dashboard-canvas"
          role="img"
          aria-label={`${plot.title}, ${plot.unit}: now ${summary}`}
        />
        {note && <p class="dashboard-note">{note}</p>}
      </div>
      <table>
        <thead>
          <tr>
            <th scope="col">line</th>
            <th scope="col">now</th>
            <th scope="col">least</th>
            <th scope="col">most</th>
          </tr>
        </thead>
        <tbody>
          {told.map(({ name, stroke, last, least, most }) => (
            <tr key={name}>
              <th scope="row">
                <Swatch stroke={stroke} /> {name}
              </th>
              <td>{plot.format(last)}</td>
              <td>{plot.format(least)}</td>
              <td>{plot.format(most)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

/** The topmost area comes first: those below are drawn over it. */
function inOrder<T>({ areas }: Plot, curves: T[]): T[] {
  return areas ? curves.toReversed() : curves;
}

/** Marks of the time axis, in seconds before now: round ones, at most six. */
function marks(seconds: number): number[] {
  const step = MARKS_S.find((each) => seconds / each <= 5) ?? seconds;
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, index) => index * step - seconds);
}

function ago(mark: number): string {
  if (mark === 0) return "now";
  return mark % 60 === 0 ? `${mark / 60} min` : `${mark} s`;
}

function options(plot: Plot, curves: readonly Curve[], width: number): uPlot.Options {
  const lines = curves.map(({ name, stroke }) => ({
    ...series(name, stroke),
    ...(plot.areas && { fill: () => `color-mix(in srgb, ${colour(stroke.token)} 25%, ${colour("--surface")})` }),
  }));
  return {
    width,
    height: HEIGHT,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false }, y: { range: (_, __, most) => rangeOf(plot, most) } },
    axes: [
      {
        ...AXIS,
        size: 24,
        splits: (_, __, from) => marks(-from),
        values: (_, splits) => splits.map(ago),
      },
      { ...AXIS, size: 44, space: 32 },
    ],
    series: [{}, ...inOrder(plot, lines)],
  };
}
