// The strip of steps, with a sentence for the step it is at or the pointer is over.

import "./strip.css";
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Cursor } from "./cursor";
import { useWidth } from "./live";
import { Slider } from "./slider";
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
