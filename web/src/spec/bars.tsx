// The strip of steps, with a sentence for the step it is at or the pointer is over.

import "./strip.css";
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { milliseconds } from "../shell/format";
import type { Cursor } from "./cursor";
import { useWidth } from "./live";
import { Slider } from "./slider";
import { BARS, LETTER_Y, STRIP_HEIGHT, scaled, TIME } from "./strip";
import type { Trace } from "./trace";
import { reasonSentence, stepSentence } from "./words";

const FIRST_WIDTH = 480;

export interface BarsProps {
  trace: Trace;
  tick: ReadonlySignal<number>;
  /** For what is read rather than watched. */
  slow: ReadonlySignal<number>;
  cursor: Cursor;
}

export function Bars({ trace, tick, slow, cursor }: BarsProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, FIRST_WIDTH);
  const over = useSignal<number | null>(null);
  return (
    <section class="spec-part" aria-labelledby="spec-strip-title">
      <header>
        <h3 id="spec-strip-title">Newest steps</h3>
        <p class="spec-hint">Click a step, or use the arrow keys.</p>
      </header>
      <div class="spec-strip">
        <Axis trace={trace} slow={slow} width={width} />
        <div ref={box}>
          <Slider trace={trace} tick={tick} cursor={cursor} width={width} over={over} />
        </div>
      </div>
      <Readout trace={trace} slow={slow} cursor={cursor} over={over} />
    </section>
  );
}

interface AxisProps extends Pick<BarsProps, "trace" | "slow"> {
  width: ReadonlySignal<number>;
}

const AXIS = 60;

/** What the strip's heights stand for. */
function Axis({ trace, slow, width }: AxisProps) {
  void slow.value;
  const { mostMs, mostNodes } = scaled(trace.steps, width.value);
  const labels: [y: number, text: string][] = [
    [TIME.top + 9, milliseconds(mostMs)],
    [BARS.top + 10, `${mostNodes} nodes`],
    [BARS.top + BARS.height, "0"],
    [LETTER_Y, "reason"],
  ];
  return (
    <svg class="spec-axis" width={AXIS} height={STRIP_HEIGHT} aria-hidden="true">
      {labels.map(([y, text]) => (
        <text key={y} x={AXIS - 6} y={y} text-anchor="end">
          {text}
        </text>
      ))}
    </svg>
  );
}

interface ReadoutProps extends Omit<BarsProps, "tick"> {
  over: ReadonlySignal<number | null>;
}

function Readout({ trace, slow, cursor, over }: ReadoutProps) {
  void slow.value;
  const index = over.value;
  const pointed = index === null ? undefined : trace.step(index);
  const told = pointed && index !== null ? { index, step: pointed } : cursor.shown;
  return (
    <p class="spec-readout">
      {told && (
        <>
          <strong>{stepSentence(told.step, told.index)}</strong> {reasonSentence(told.step)}
        </>
      )}
    </p>
  );
}
