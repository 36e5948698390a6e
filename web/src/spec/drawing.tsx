// A step's tree as a drawing: the accepted path lit, wrong guesses and those behind them faded and struck through.

import type { Step, StepTree } from "../wire/events";
import { layOut, type Place } from "./layout";
import { originOf, shortSource } from "./origins";
import { type Fate, fatesOf, ownToken } from "./tree";
import { clipped, probability, treeSentence } from "./words";

const NODE = { width: 112, height: 38 };
const GAP = { x: 24, y: 8 };
const EDGE = 6; // around the whole
const TICK = `M${NODE.width - 16} 11l3 4 6-8`; // a shape, since a text would cost a layout of its own
const EQUAL = `M${NODE.width - 16} 9h8m0 5h-8`;
const MARKS: Readonly<Partial<Record<Fate | "own", string>>> = { accepted: TICK, met: EQUAL };

export interface DrawingProps {
  /** Steps of the reply before it. */
  index: number;
  step: Step;
  tree: StepTree;
  /** CSS pixels the drawing may be wide; it shrinks down to `least` of its size for it. */
  room: number;
  least: number;
}

export function Drawing({ index, step, tree, room, least }: DrawingProps) {
  const own = ownToken(step);
  const { places, own: ownPlace, columns, rows } = layOut(tree, own !== null);
  const width = columns * (NODE.width + GAP.x) - GAP.x + 2 * EDGE;
  const height = rows * (NODE.height + GAP.y) - GAP.y + 2 * EDGE;
  const scale = Math.min(1, Math.max(least, room / width));
  const fates = fatesOf(step, tree);
  const lastNode = tree.path[tree.path.length - 1] ?? 0;
  const last = places[lastNode];
  return (
    <svg
      class="spec-tree"
      role="img"
      data-step={index}
      aria-label={`Tree of ${treeSentence(step)}`}
      width={width * scale}
      height={height * scale}
      viewBox={`0 0 ${width} ${height}`}
    >
      {places.map((place, node) => {
        const parentNode = tree.parents[node] ?? -1;
        const parent = places[parentNode];
        const lit = fates[node] === "accepted";
        return parent && <Link key={node} ends={[parentNode, node]} from={parent} to={place} lit={lit} />;
      })}
      {last && ownPlace && <Link ends={[lastNode, "own"]} from={last} to={ownPlace} lit />}
      {places.map((place, node) => (
        <Node
          key={node}
          node={node}
          place={place}
          fate={fates[node] ?? "rejected"}
          text={tree.texts[node] ?? ""}
          source={tree.sources[node] ?? ""}
          note={
            node === 0 ? "pending" : `${probability(tree.estimates[node] ?? 0)}/${probability(tree.chances[node] ?? 0)}`
          }
        />
      ))}
      {own && ownPlace && (
        <Node node="own" place={ownPlace} fate="own" text={own.text} source="" note="the model’s own" />
      )}
    </svg>
  );
}

function left({ column }: Place): number {
  return EDGE + column * (NODE.width + GAP.x);
}

function top({ row }: Place): number {
  return EDGE + row * (NODE.height + GAP.y);
}

interface LinkProps {
  /** What it joins, as `Node` names them. */
  ends: readonly [number, number | "own"];
  from: Place;
  to: Place;
  lit: boolean;
}

function Link({ ends, from, to, lit }: LinkProps) {
  const x = left(from) + NODE.width;
  const y = top(from) + NODE.height / 2;
  const end = top(to) + NODE.height / 2;
  const bend = x + GAP.x / 2;
  const shape = from.row === to.row ? `M${x} ${y}H${left(to)}` : `M${x} ${y}H${bend}V${end}H${left(to)}`;
  return <path class={lit ? "spec-link spec-lit" : "spec-link"} data-from={ends[0]} data-to={ends[1]} d={shape} />;
}

interface NodeProps {
  /** "own": the model's own token, which is no node of the tree. */
  node: number | "own";
  place: Place;
  fate: Fate | "own";
  text: string;
  source: string;
  note: string;
}

function Node({ node, place, fate, text, source, note }: NodeProps) {
  const mark = MARKS[fate];
  const origin = originOf(source);
  return (
    <g
      class={`spec-node spec-${fate} spec-${origin.key}`}
      transform={`translate(${left(place)} ${top(place)})`}
      data-node={node}
      data-accepted={fate === "pending" || fate === "accepted" || fate === "own"}
      data-source={source}
    >
      <rect width={NODE.width} height={NODE.height} rx={6} />
      <text class="spec-word" x={7} y={16}>
        {clipped(text)}
      </text>
      <text class="spec-note" x={7} y={31}>
        {fate === "pending" || fate === "own" ? note : `${shortSource(source)} ${note}`}
      </text>
      {mark && <path class="spec-mark" d={mark} />}
    </g>
  );
}
