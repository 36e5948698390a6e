// One lane: its text as it came, its clock and its figures.

import { useEffect, useRef } from "preact/hooks";
import type { Figures } from "../spec/figures";
import { FigureList, type FigureName } from "../spec/told";
import { Inscription } from "./inscription";
import type { Lane } from "./lane";
import type { LaneName } from "./plan";
import type { Phase } from "./race";

export interface LaneCardProps {
  name: LaneName;
  /** null: it has not begun. */
  lane: Lane | null;
  /** 0: it runs first. */
  turn: number;
  phase: Phase;
  /** The replay's moment in milliseconds; null: as far as it has come. */
  at: number | null;
}

const SHOWN: readonly FigureName[] = ["ttft", "tpot", "tokens", "per-step", "acceptance"];
const NAMES = { ttft: "TTFT, prompt warm" };
const TITLES: Record<LaneName, string> = { plain: "Plain", speculating: "Speculating" };

export function LaneCard({ name, lane, turn, phase, at }: LaneCardProps) {
  const place = useRef<HTMLDivElement>(null);
  const text = useRef<Inscription | null>(null);
  useEffect(() => {
    text.current ??= place.current && new Inscription(place.current);
    const marks = lane?.marks ?? [];
    text.current?.draw(marks, at === null || lane === null ? marks.length : lane.arrived(at));
  });
  return (
    <section class="race-lane" data-lane={name} aria-labelledby={`race-${name}`}>
      <header>
        <h2 id={`race-${name}`}>{TITLES[name]}</h2>
        <span class="race-clock">{clock(lane, at)}</span>
        <span class="race-quiet">{stateWords(lane, turn, phase, name)}</span>
      </header>
      <div class="race-text" dir="auto" ref={place} />
      <FigureList class="race-figures" figures={figuresOf(lane, at)} which={SHOWN} names={NAMES} />
    </section>
  );
}

function figuresOf(lane: Lane | null, at: number | null): Figures | null {
  return at === null || lane === null ? (lane?.figures ?? null) : lane.figuresAt(at);
}

/** The lane's own clock, at the moment that is looked at. */
function clock(lane: Lane | null, at: number | null): string {
  const end = lane === null ? 0 : (lane.total ?? lane.marks.at(-1)?.at ?? 0);
  return `${(Math.min(end, at ?? end) / 1000).toFixed(2)} s`;
}

function stateWords(lane: Lane | null, turn: number, phase: Phase, name: LaneName): string {
  if (lane === null && turn === 0) return phase === "warming" ? "waits until the prompt is read" : "runs first";
  if (lane === null) return "runs next";
  if (phase === name) return "runs now";
  return lane.total === null ? "broken off" : `ran ${turn === 0 ? "first" : "second"}`;
}
