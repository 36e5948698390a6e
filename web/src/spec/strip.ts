// The strip of the newest steps as shapes, in units of its own width and height: no element, no colour.

import type { Step } from "../wire/events";
import { REASON_LEVELS, type Reason, reasonLevel, reasonOf } from "./reasons";

const MOST_BARS = 120;
const LEAST_PITCH = 4;
const LETTER_ROOM = 9;
const TIME = { top: 2, height: 20 };
const BARS = { top: 28, height: 52 };
const LEVELS = { top: 84, pitch: 2 };
const LETTER_Y = LEVELS.top + LEVELS.pitch * REASON_LEVELS + 10;

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
  /** SVG paths: nodes verified, of these the pending token and the accepted guesses, wall time, reasons as levels. */
  verified: string;
  accepted: string;
  time: string;
  levels: string;
  /** Letters of the reasons where they fit. */
  letters: Run[];
  letterY: number;
  /** What the full height of the bars and of the line stands for. */
  mostNodes: number;
  mostMs: number;
}

/** steps: the newest last; dropped: steps before them; width: at least a few dozen. */
export function stripOf(steps: readonly Step[], dropped: number, width: number): Strip {
  const bars = Math.min(MOST_BARS, Math.max(1, Math.floor(width / LEAST_PITCH)));
  const shown = steps.slice(-bars);
  const pitch = width / bars;
  const mostNodes = shown.reduce((most, step) => Math.max(most, step.nodes), 8);
  const mostMs = shown.reduce((most, step) => Math.max(most, step.ms), 1);
  const bar = (place: number, nodes: number) => {
    const height = (BARS.height * Math.max(0, Math.min(nodes, mostNodes))) / mostNodes;
    return `M${fixed(place * pitch + 0.5)} ${fixed(BARS.top + BARS.height - height)}h${fixed(pitch - 1)}v${fixed(height)}h${fixed(1 - pitch)}z`;
  };
  const timed = (step: Step, place: number) =>
    `${place === 0 ? "M" : "L"}${fixed((place + 0.5) * pitch)} ${fixed(TIME.top + TIME.height * (1 - step.ms / mostMs))}`;
  const runs = runsOf(shown);
  return {
    first: dropped + steps.length - shown.length,
    count: shown.length,
    pitch,
    verified: shown.map((step, place) => bar(place, step.nodes)).join(""),
    accepted: shown.map((step, place) => bar(place, step.accepted + 1)).join(""),
    time: shown.map(timed).join(""),
    levels: runs
      .map(
        ({ start, length, reason }) =>
          `M${fixed(start * pitch + 0.5)} ${LEVELS.top + reasonLevel(reason) * LEVELS.pitch}h${fixed(length * pitch - 1)}`,
      )
      .join(""),
    letters: runs
      .filter(({ length }) => length * pitch >= LETTER_ROOM)
      .map(({ start, reason }) => ({ x: start * pitch + 1, letter: reason.letter })),
    letterY: LETTER_Y,
    mostNodes,
    mostMs,
  };
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
