// The strip of steps: a slider over the newest ones, with a sentence for the step it is at or the pointer is over.

import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Cursor } from "./cursor";
import { milliseconds } from "./format";
import { onStepKey } from "./keys";
import { drawWith, useVisible, useWidth } from "./live";
import { reasonLevel, reasonOf } from "./reasons";
import { STRIP_HEIGHT, stepAt, stripOf } from "./strip";
import type { Trace } from "./trace";
import { reasonSentence, stepSentence } from "./words";

const FIRST_WIDTH = 480;

export interface BarsProps {
  trace: Trace;
  tick: Signal<number>;
  cursor: Cursor;
}

export function Bars({ trace, tick, cursor }: BarsProps) {
  const box = useRef<HTMLDivElement>(null);
  const visible = useVisible(box);
  const width = useWidth(box, FIRST_WIDTH).value;
  const over = useSignal<number | null>(null);
  drawWith(tick, visible);
  const strip = stripOf(trace.steps, trace.dropped, width);
  const shown = cursor.shown;
  const held = cursor.held.value !== null;
  const pointed = over.value === null ? undefined : trace.step(over.value);
  const told = pointed && over.value !== null ? { index: over.value, step: pointed } : shown;
  const under = (event: PointerEvent) =>
    stepAt(strip, event.clientX - (box.current?.getBoundingClientRect().left ?? 0));
  const reasons = [...new Set(trace.steps.slice(-strip.count).map((step) => reasonOf(step.reason)))].sort(
    (a, b) => reasonLevel(a) - reasonLevel(b),
  );
  const place = shown ? shown.index - strip.first : -1;
  return (
    <div class="spec-strip">
      <div
        ref={box}
        class="spec-bars"
        role="slider"
        tabIndex={0}
        aria-label="Step"
        aria-valuemin={trace.dropped + 1}
        aria-valuemax={trace.dropped + trace.steps.length}
        aria-valuenow={held && shown ? shown.index + 1 : trace.dropped + trace.steps.length}
        aria-valuetext={held && shown ? stepSentence(shown.step, shown.index) : "The newest step is followed"}
        onKeyDown={onStepKey(cursor, true)}
        onPointerDown={(event) => {
          const index = under(event);
          if (index !== null) cursor.hold(index);
        }}
        onPointerMove={(event) => {
          over.value = under(event);
          if (event.buttons & 1 && over.value !== null) cursor.hold(over.value);
        }}
        onPointerLeave={() => {
          over.value = null;
        }}
      >
        <svg width={width} height={STRIP_HEIGHT} viewBox={`0 0 ${width} ${STRIP_HEIGHT}`} aria-hidden="true">
          {place >= 0 && place < strip.count && (
            <rect class="spec-at" x={place * strip.pitch} y={0} width={strip.pitch} height={STRIP_HEIGHT} />
          )}
          <path class="spec-time" d={strip.time} />
          <path class="spec-verified" d={strip.verified} />
          <path class="spec-accepted" d={strip.accepted} />
          <path class="spec-reasons" d={strip.reasons} />
          {strip.letters.map(({ x, letter }, index) => (
            <text key={index} x={x} y={strip.letterY}>
              {letter}
            </text>
          ))}
        </svg>
      </div>
      <p class="spec-readout">
        {told && (
          <>
            <strong>{stepSentence(told.step, told.index)}</strong> {reasonSentence(told.step)}
          </>
        )}
      </p>
      <p class="spec-key">
        Line above: time of the step, up to {milliseconds(strip.mostMs)}. Bars: nodes verified, up to {strip.mostNodes},
        filled for the pending token and the guesses that were right. Line below: the planner's reason, from top to
        bottom and by letter: {reasons.map(({ letter, name }) => `${letter} ${name}`).join(", ")}.
      </p>
    </div>
  );
}
