// Which lines are drawn over time, and how each is told from its neighbours without its colour.

import type { Stroke } from "../shell/canvas";
import FAMILIES from "./families.json";
import type { Column, History, Row } from "./history";
import { type Line, levels, rates, ratios, stacked } from "./series";
import { matches, type Named } from "./span";
import { amount, type Unit, whole } from "./units";

const FIRST: Stroke = { token: "--origin-recurrent", dash: [] };
const SECOND: Stroke = { token: "--origin-suffix", dash: [6, 3] };
const THIRD: Stroke = { token: "--origin-draft", dash: [2, 3] };
const FOURTH: Stroke = { token: "--origin-model", dash: [10, 3, 2, 3] };

interface CurveOf {
  name: string;
  stroke: Stroke;
  /** The families it is made of; it is left out where the server does not have one of them. */
  of: readonly Named[];
  line(rows: readonly Row[], columns: readonly (readonly Column[])[]): Line;
}

export interface Plot {
  id: string;
  title: string;
  /** Behind the title. */
  unit: string;
  format: Unit;
  /** The curves are areas that lie on each other, the first lowest. */
  areas: boolean;
  /** All there can be, where that is known: the axis ends there. */
  top?: number;
  curves: readonly CurveOf[];
}

export interface Curve {
  name: string;
  stroke: Stroke;
  /** As told in words. */
  values: Line;
  /** As drawn: the same, or lifted onto the areas below. */
  drawn: Line;
}

/** The plot's curves over these rows; none: the server has none of the families. */
export function curvesOf(plot: Plot, history: History, rows: readonly Row[]): Curve[] {
  const told = plot.curves.flatMap(({ name, stroke, of, line }) => {
    const columns = of.map((family) => history.family(family.name));
    return columns.every(({ length }) => length > 0) ? [{ name, stroke, values: line(rows, columns) }] : [];
  });
  const tops = plot.areas ? stacked(told.map(({ values }) => values)) : [];
  return told.map((curve, index) => ({ ...curve, drawn: tops[index] ?? curve.values }));
}

/** Where the axis of the values begins and ends; most: the largest value. */
export function rangeOf({ top }: Plot, most: number): [number, number] {
  return [0, top ?? (most > 0 ? most * 1.05 : 1)];
}

/** Why much of a plot is empty: what was before the page watched. "" where less than half is. */
export function watchedSince(oldest: number, now: number, seconds: number): string {
  if (now - oldest > seconds / 2) return "";
  const time = new Date(oldest * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return `Watched since ${time}; earlier is not kept.`;
}

function curve(name: string, stroke: Stroke, of: readonly Named[], line: CurveOf["line"]): CurveOf {
  return { name, stroke, of, line };
}

const rateLine: CurveOf["line"] = (rows, [of = []]) => rates(rows, of);
const levelLine: CurveOf["line"] = (rows, [of = []]) => levels(rows, of);
const ratioLine =
  (scale: number): CurveOf["line"] =>
  (rows, [part = [], all = []]) =>
    ratios(rows, part, all, scale);
const blockLine =
  (state: string): CurveOf["line"] =>
  (rows, [blocks = []]) =>
    levels(
      rows,
      blocks.filter((column) => matches(column, { state })),
    );

/** The cached blocks that are not pinned. */
const looseLine: CurveOf["line"] = (rows, [blocks = [], pinned = []]) => {
  const kept = levels(rows, pinned);
  return blockLine("cached")(rows, [blocks]).map((all, index) => (all === null ? null : all - (kept[index] ?? 0)));
};

export const PLOTS: readonly Plot[] = [
  {
    id: "speed",
    title: "Speed",
    unit: "per second",
    format: amount,
    areas: false,
    curves: [
      curve("tokens", FIRST, [FAMILIES.generated], rateLine),
      curve("steps", SECOND, [FAMILIES.steps], rateLine),
    ],
  },
  {
    id: "step-time",
    title: "One step",
    unit: "milliseconds",
    format: amount,
    areas: false,
    curves: [
      curve("whole step", FIRST, [FAMILIES.stepSeconds, FAMILIES.steps], ratioLine(1000)),
      curve("of which the model", SECOND, [FAMILIES.forwardSeconds, FAMILIES.steps], ratioLine(1000)),
    ],
  },
  {
    id: "gain",
    title: "Work saved",
    unit: "percent",
    format: amount,
    areas: false,
    top: 100,
    curves: [
      curve("guesses accepted", FIRST, [FAMILIES.accepted, FAMILIES.drafted], ratioLine(100)),
      curve("prompt from the cache", SECOND, [FAMILIES.prefixHits, FAMILIES.prompt], ratioLine(100)),
    ],
  },
  {
    id: "requests",
    title: "Requests",
    unit: "at a time",
    format: whole,
    areas: false,
    curves: [
      curve("running", FIRST, [FAMILIES.running], levelLine),
      curve("waiting", SECOND, [FAMILIES.waiting], levelLine),
      curve("open sockets", THIRD, [FAMILIES.sockets], levelLine),
    ],
  },
  {
    id: "cache",
    title: "Cache",
    unit: "blocks of 16 tokens, on each other",
    format: whole,
    areas: true,
    curves: [
      curve("held by replies", FIRST, [FAMILIES.blocks], blockLine("held")),
      curve("kept for conversations", SECOND, [FAMILIES.pinned], levelLine),
      curve("cached besides", THIRD, [FAMILIES.blocks, FAMILIES.pinned], looseLine),
      curve("free", FOURTH, [FAMILIES.blocks], blockLine("free")),
    ],
  },
];
