// How a tree is drawn into a box: with its figures where it fits so, else as words alone; in lines like those of a text
// where it is long, and made smaller where even the words do not fit. Shapes and sizes only: no element, no colour.

import type { Place } from "./layout";

/** What may be drawn of a tree: all of it in the box; the same, and in words in any case; or all figures, whatever it takes. */
export type Extent = "whole" | "words" | "large";

/** A tree's nodes and behind them, where there is one, the model's own token, as if it were one more. All: [n]. */
export interface Nodes {
  places: readonly Place[];
  /** -1: none. */
  parents: readonly number[];
  /** CSS pixels of a node that is drawn as a word alone. */
  widths: readonly number[];
}

export interface Room {
  width: number;
  height: number;
}

/** Where a node is drawn, from its left upper corner. */
export interface Spot {
  x: number;
  y: number;
  width: number;
}

export interface Drawn {
  /** Words alone. */
  brief: boolean;
  /** Of a node, before scaling. */
  height: number;
  spots: Spot[];
  /** SVG paths from parents to nodes; "" without a parent. */
  links: string[];
  /** Of the whole, before scaling. */
  size: Room;
  scale: number;
}

interface Form {
  height: number;
  gap: { x: number; y: number };
}

const FULL: Form & { width: number } = { width: 128, height: 38, gap: { x: 24, y: 8 } };
const BRIEF: Form = { height: 22, gap: { x: 14, y: 6 } };
const EDGE = 8; // around the whole
const READABLE = 0.9; // of its size, for a drawing with figures
const SMALLEST = 0.2;
const STEP = 0.9; // from one size that is tried to the next
const LANE = { first: 5, pitch: 3, most: 3 }; // of a link that goes on in the next line
const TURN = EDGE + LANE.first + LANE.pitch * LANE.most; // room for these at both sides of a line, and below it

export function fitted(nodes: Nodes, room: Room, extent: Extent): Drawn {
  const full = { ...nodes, widths: nodes.places.map(() => FULL.width) };
  if (extent === "large") return { ...arrange(full, FULL, Number.POSITIVE_INFINITY), brief: false, scale: 1 };
  const inside = ({ size }: { size: Room }, scale: number) =>
    size.width * scale <= room.width && size.height * scale <= room.height;
  for (const scale of extent === "words" ? [] : [1, READABLE]) {
    const drawn = arrange(full, FULL, room.width / scale);
    if (inside(drawn, scale)) return { ...drawn, brief: false, scale };
  }
  for (let scale = 1; ; scale *= STEP) {
    const drawn = arrange(nodes, BRIEF, room.width / scale);
    if (inside(drawn, scale) || scale < SMALLEST) return { ...drawn, brief: true, scale };
  }
}

/** Columns as wide as their widest node, in as many lines as it takes where all are wider than `room`. */
function arrange({ places, parents, widths }: Nodes, form: Form, room: number): Omit<Drawn, "brief" | "scale"> {
  const columns: number[] = [];
  places.forEach(({ column }, node) => {
    columns[column] = Math.max(columns[column] ?? 0, widths[node] ?? 0);
  });
  const starts = startsOf(columns, form, room);
  const lineOf = (node: number) => starts[places[node]?.column ?? 0]?.line ?? 0;
  const lines = linesOf(places, parents, lineOf, form);
  const spots = places.map(({ column, row }, node) => {
    const { top, rows } = lines[lineOf(node)] as Line;
    const y = top + rows.indexOf(row) * (form.height + form.gap.y);
    return { x: starts[column]?.x ?? 0, y, width: widths[node] ?? 0 };
  });
  const rights = lines.map((_, line) =>
    spots.reduce((most, { x, width }, node) => (lineOf(node) === line ? Math.max(most, x + width) : most), 0),
  );
  const links = spots.map((spot, node) => {
    const parent = parents[node] ?? -1;
    const from = spots[parent];
    if (!from) return "";
    const y = from.y + form.height / 2;
    const end = spot.y + form.height / 2;
    const start = `M${from.x + from.width} ${y}`;
    const { bottom, lanes } = lines[lineOf(parent)] as Line;
    if (lineOf(parent) === lineOf(node)) {
      return y === end ? `${start}H${spot.x}` : `${start}H${spot.x - form.gap.x / 2}V${end}H${spot.x}`;
    }
    const lane = LANE.first + LANE.pitch * Math.min(LANE.most, lanes.indexOf(parent));
    return `${start}H${(rights[lineOf(parent)] ?? 0) + lane}V${bottom + lane}H${TURN - lane}V${end}H${spot.x}`;
  });
  const side = lines.length > 1 ? TURN : EDGE;
  const last = lines[lines.length - 1];
  const size = { width: Math.max(...rights) + side, height: (last?.bottom ?? 0) + EDGE };
  return { height: form.height, spots, links, size };
}

/** Of each column: the line it stands in, and its left edge. */
function startsOf(columns: readonly number[], { gap }: Form, room: number): { line: number; x: number }[] {
  const whole = columns.reduce((sum, width) => sum + width + gap.x, 2 * EDGE - gap.x);
  const right = whole <= room ? room : room - TURN;
  let line = 0;
  let next = EDGE;
  return columns.map((width, column) => {
    if (column > 0 && next + width > right) {
      line += 1;
      next = TURN + gap.x / 2;
    }
    const start = { line, x: next };
    next += width + gap.x;
    return start;
  });
}

interface Line {
  top: number;
  bottom: number;
  /** The rows of the layout that it has nodes of, from the top. */
  rows: number[];
  /** Nodes whose children stand in the next line. */
  lanes: number[];
}

function linesOf(
  places: readonly Place[],
  parents: readonly number[],
  lineOf: (node: number) => number,
  form: Form,
): Line[] {
  const lines: Line[] = [];
  const lineAt = (index: number) => {
    while (lines.length <= index) lines.push({ top: 0, bottom: 0, rows: [], lanes: [] });
    return lines[index] as Line;
  };
  places.forEach(({ row }, node) => {
    const { rows } = lineAt(lineOf(node));
    if (!rows.includes(row)) rows.push(row);
    const parent = parents[node] ?? -1;
    if (parent < 0 || lineOf(parent) === lineOf(node)) return;
    const { lanes } = lineAt(lineOf(parent));
    if (!lanes.includes(parent)) lanes.push(parent);
  });
  let top = EDGE;
  for (const line of lines) {
    line.rows.sort((a, b) => a - b);
    line.top = top;
    line.bottom = top + line.rows.length * (form.height + form.gap.y) - form.gap.y;
    top = line.bottom + 2 * LANE.first + LANE.pitch * Math.min(LANE.most, line.lanes.length);
  }
  return lines;
}
