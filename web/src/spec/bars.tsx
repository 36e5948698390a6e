// The strip of steps, with a sentence for the step it is at or the pointer is over, and how it is read.

import "./strip.css";
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { milliseconds } from "../shell/format";
import type { Cursor } from "./cursor";
import { useWidth } from "./live";
import { Slider } from "./slider";
import { stripOf } from "./strip";
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
    <div ref={box} class="spec-strip">
      <Slider trace={trace} tick={tick} cursor={cursor} width={width} over={over} />
      <Readout trace={trace} slow={slow} cursor={cursor} over={over} />
      <Key trace={trace} slow={slow} width={width} />
    </div>
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

interface KeyProps {
  trace: Trace;
  slow: ReadonlySignal<number>;
  width: ReadonlySignal<number>;
}

function Key({ trace, slow, width }: KeyProps) {
  void slow.value;
  const { mostMs, mostNodes, reasons } = stripOf(trace.steps, trace.dropped, width.value);
  return (
    <details class="spec-key">
      <summary>How to read the strip</summary>
      <ul>
        <li>Line above: time of each step, up to {milliseconds(mostMs)}.</li>
        <li>
          Bars: nodes verified, up to {mostNodes}; filled for the pending token and the guesses that were accepted.
        </li>
        <li>
          Line below: the planner's reason, from top to bottom and by letter:{" "}
          {reasons.map(({ letter, name }) => `${letter} ${name}`).join(", ")}.
        </li>
      </ul>
    </details>
  );
}
