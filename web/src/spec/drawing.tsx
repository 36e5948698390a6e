// A step's tree as a drawing: the accepted path lit, wrong guesses and those behind them faded.

import { useMemo } from "preact/hooks";
import type { Step, StepTree } from "../wire/events";
import { type Extent, fitted, type Room, type Spot } from "./fit";
import { layOut } from "./layout";
import { originOf, shortSource } from "./origins";
import { type Fate, fatesOf, ownToken } from "./tree";
import { cells, clipped, probability, treeSentence } from "./words";

const CELL = 7.25; // CSS pixels of a character of a word
const INSET = 7;
const MARK = 16; // room for one, from the right
const TICK = "M0 11l3 4 6-8"; // a shape, since a text would cost a layout of its own
const EQUAL = "M0 9h8m0 5h-8";
const MARKS: Readonly<Partial<Record<Fate | "own", string>>> = { accepted: TICK, met: EQUAL };

export interface DrawingProps {
  /** Steps of the reply before it. */
  index: number;
  step: Step;
  tree: StepTree;
  room: Room;
  extent: Extent;
  /** Told whether words were all there was room for. */
  onDrawn(brief: boolean): void;
}

/** Drawn again only where something of it is another: a step that is held stays through all frames of the reply. */
export function Drawing(props: DrawingProps) {
  const { index, step, tree, room, extent } = props;
  return useMemo(() => drawn(props), [index, step, tree, room.width, room.height, extent]);
}

function drawn({ index, step, tree, room, extent, onDrawn }: DrawingProps) {
  const own = ownToken(step);
  const fates = fatesOf(step, tree);
  const layout = layOut(tree, own !== null);
  const places = layout.own ? [...layout.places, layout.own] : layout.places;
  const last = tree.path[tree.path.length - 1] ?? 0;
  const words = (own ? [...tree.texts, own.text] : tree.texts).map(clipped);
  const widths = words.map((word, node) => 2 * INSET + CELL * cells(word) + (fates[node] === "met" ? MARK : 0));
  const nodes = { places, parents: [...tree.parents, last], widths };
  const { spots, links, size, scale, brief, height } = fitted(nodes, room, extent);
  onDrawn(brief);
  const name = (node: number) => (node < tree.texts.length ? node : "own");
  const lit = (node: number) => name(node) === "own" || fates[node] === "accepted";
  return (
    <svg
      class={brief ? "spec-tree spec-brief" : "spec-tree"}
      role="img"
      data-step={index}
      aria-label={`Tree of ${treeSentence(step)}`}
      width={size.width * scale}
      height={size.height * scale}
      viewBox={`0 0 ${size.width} ${size.height}`}
    >
      {[false, true].map((lighted) =>
        links.map(
          (d, node) =>
            d !== "" &&
            lit(node) === lighted && (
              <path
                key={node}
                class={lighted ? "spec-link spec-lit" : "spec-link"}
                d={d}
                data-from={node < tree.texts.length ? tree.parents[node] : last}
                data-to={name(node)}
              />
            ),
        ),
      )}
      {spots.map((spot, node) => {
        const at = name(node);
        return (
          <Node
            key={at}
            node={at}
            spot={spot}
            height={height}
            fate={at === "own" ? "own" : (fates[node] ?? "rejected")}
            word={words[node] ?? ""}
            source={tree.sources[node] ?? ""}
            note={noteOf(tree, at)}
          />
        );
      })}
    </svg>
  );
}

function noteOf({ estimates, chances, sources }: StepTree, node: number | "own"): string {
  if (node === "own") return "the model’s own";
  if (node === 0) return "pending";
  return `${shortSource(sources[node] ?? "")} ${probability(estimates[node] ?? 0)}/${probability(chances[node] ?? 0)}`;
}

interface NodeProps {
  /** "own": the model's own token, which is no node of the tree. */
  node: number | "own";
  spot: Spot;
  height: number;
  fate: Fate | "own";
  word: string;
  source: string;
  /** Not seen where words stand alone. */
  note: string;
}

function Node({ node, spot: { x, y, width }, height, fate, word, source, note }: NodeProps) {
  const mark = MARKS[fate];
  return (
    <g
      class={`spec-node spec-${fate} spec-${originOf(source).key}`}
      transform={`translate(${x} ${y})`}
      data-node={node}
      data-accepted={fate === "pending" || fate === "accepted" || fate === "own"}
      data-source={source}
    >
      <rect width={width} height={height} rx={6} />
      <text class="spec-word" x={INSET} y={15.5}>
        {word}
      </text>
      <text class="spec-note" x={INSET} y={31}>
        {note}
      </text>
      {mark && <path class="spec-mark" d={mark} transform={`translate(${width - MARK} 0)`} />}
    </g>
  );
}
