// The strip of the newest steps as shapes, in units of its own width and height: no element, no colour.

import type { Step } from "../wire/events";
import { type OriginKey, originOf } from "./origins";
import { REASON_LEVELS, type Reason, reasonLevel, reasonOf } from "./reasons";

const MOST_BARS = 120;
const LEAST_PITCH = 4;
const LEAST_ROOM = 15; // bars there is room for in any case; doubled as they come, so that the strip grows now and then
const LEAST_WHOLE = 8; // and once they are all there
const LETTER_ROOM = 9;
export const TIME = { top: 2, height: 20 };
export const BARS = { top: 28, height: 52 };
const LEVELS = { top: 84, pitch: 2 };
export const LETTER_Y = LEVELS.top + LEVELS.pitch * REASON_LEVELS + 10;

export const STRIP_HEIGHT = LETTER_Y + 4;

export interface Run {
  x: number;
  letter: string;
}

export interface Strip {
  /** Steps of the reply before the first bar, and how many bars there are. */
  first: number;
  count: number;
  /** From one bar to the next. */
  pitch: number;
  /** SVG paths: nodes verified, of these the pending token and the accepted guesses by origin, wall time, reasons as levels. */
  verified: string;
  accepted: ReadonlyMap<OriginKey, string>;
  time: string;
  levels: string;
  /** Letters of the reasons where they fit. */
  letters: Run[];
  /** What the full height of the bars and of the line stands for. */
  mostNodes: number;
  mostMs: number;
}

/** The newest steps, as many as there is room for, and what the full height of their bars and of their line stands for. */
export function scaled(steps: readonly Step[], width: number) {
  const most = Math.min(MOST_BARS, Math.max(1, Math.floor(width / LEAST_PITCH)));
  const shown = steps.slice(-most);
  const mostNodes = shown.reduce((most, step) => Math.max(most, step.nodes), 8);
  const mostMs = shown.reduce((most, step) => Math.max(most, step.ms), 1);
  return { most, shown, mostNodes, mostMs };
}

/** steps: the newest last; dropped: steps before them; width: at least a few dozen; ended: there will be no more. */
export function stripOf(steps: readonly Step[], dropped: number, width: number, ended: boolean): Strip {
  const { most, shown, mostNodes, mostMs } = scaled(steps, width);
  const pitch = width / Math.min(most, ended ? Math.max(shown.length, LEAST_WHOLE) : roomFor(shown.length));
  const gap = Math.max(1, pitch / 8);
  /** A piece of a bar: above so many nodes, so many more. */
  const bar = (place: number, below: number, nodes: number) => {
    const height = (count: number) => (BARS.height * Math.max(0, Math.min(count, mostNodes))) / mostNodes;
    const [top, bottom] = [height(below + nodes), height(below)];
    return `M${fixed(place * pitch + gap / 2)} ${fixed(BARS.top + BARS.height - top)}h${fixed(pitch - gap)}v${fixed(top - bottom)}h${fixed(gap - pitch)}z`;
  };
  const timed = (step: Step, place: number) =>
    `${place === 0 ? "M" : "L"}${fixed((place + 0.5) * pitch)} ${fixed(TIME.top + TIME.height * (1 - step.ms / mostMs))}`;
  const runs = runsOf(shown);
  return {
    first: dropped + steps.length - shown.length,
    count: shown.length,
    pitch,
    verified: shown.map((step, place) => bar(place, 0, step.nodes)).join(""),
    accepted: acceptedBy(shown, bar),
    time: shown.map(timed).join(""),
    levels: runs
      .map(
        ({ start, length, reason }) =>
          `M${fixed(start * pitch + gap / 2)} ${LEVELS.top + reasonLevel(reason) * LEVELS.pitch}h${fixed(length * pitch - gap)}`,
      )
      .join(""),
    letters: runs
      .filter(({ length }) => length * pitch >= LETTER_ROOM)
      .map(({ start, reason }) => ({ x: start * pitch + gap / 2, letter: reason.letter })),
    mostNodes,
    mostMs,
  };
}

/** Bars there is room for while `count` of them are there. */
function roomFor(count: number): number {
  let room = LEAST_ROOM;
  while (room < count) room *= 2;
  return room;
}

/** Of the bars, what became text: the pending token, which counts as the model's own, and the guesses above it. */
function acceptedBy(
  steps: readonly Step[],
  bar: (place: number, below: number, nodes: number) => string,
): Map<OriginKey, string> {
  const paths = new Map<OriginKey, string>();
  const add = (key: OriginKey, path: string) => paths.set(key, (paths.get(key) ?? "") + path);
  steps.forEach(({ accepted, tokens }, place) => {
    add("model", bar(place, 0, 1));
    for (let from = 0; from < accepted; ) {
      const keyOf = (guess: number) => originOf(tokens[guess]?.source ?? null).key;
      let to = from + 1;
      while (to < accepted && to < tokens.length && keyOf(to) === keyOf(from)) to += 1;
      if (from >= tokens.length) to = accepted; // which were not told
      add(keyOf(from), bar(place, from + 1, to - from));
      from = to;
    }
  });
  return paths;
}

/** The step at a distance from the strip's left edge, as an index of the reply; null where there is none. */
export function stepAt(strip: Strip, x: number): number | null {
  const place = Math.floor(x / strip.pitch);
  return place >= 0 && place < strip.count ? strip.first + place : null;
}

/** The reasons that occur, from the highest level of the strip to the lowest. */
export function reasonsOf(steps: readonly Step[]): Reason[] {
  return [...new Set(steps.map(({ reason }) => reasonOf(reason)))].sort((a, b) => reasonLevel(a) - reasonLevel(b));
}

interface ReasonRun {
  start: number;
  length: number;
  reason: Reason;
}

/** Neighbours with the same reason, together. */
function runsOf(steps: readonly Step[]): ReasonRun[] {
  const runs: ReasonRun[] = [];
  steps.forEach((step, place) => {
    const reason = reasonOf(step.reason);
    const last = runs[runs.length - 1];
    if (last?.reason === reason) last.length += 1;
    else runs.push({ start: place, length: 1, reason });
  });
  return runs;
}

/** Path numbers with one digit, which is finer than a pixel. */
function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}
