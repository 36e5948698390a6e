// The strip of steps as a slider: a step is chosen by pressing it, or by keys.

import type { ReadonlySignal, Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Cursor } from "./cursor";
import { onStepKey } from "./keys";
import { useDrawing } from "./live";
import { BARS, LETTER_Y, STRIP_HEIGHT, type Strip, stepAt, stripOf } from "./strip";
import type { Trace } from "./trace";
import { stepSentence } from "./words";

export interface SliderProps {
  trace: Trace;
  tick: ReadonlySignal<number>;
  cursor: Cursor;
  /** CSS pixels. */
  width: ReadonlySignal<number>;
  /** Told here: the step under the pointer, as an index of the reply. */
  over: Signal<number | null>;
}

export function Slider({ trace, tick, cursor, width, over }: SliderProps) {
  const box = useRef<HTMLDivElement>(null);
  useDrawing(box, tick)();
  const strip = stripOf(trace.steps, trace.dropped, width.value, trace.ended);
  const held = cursor.held.value;
  const newest = trace.dropped + trace.steps.length;
  const under = (event: PointerEvent) =>
    stepAt(strip, event.clientX - (box.current?.getBoundingClientRect().left ?? 0));
  return (
    <div
      ref={box}
      class="spec-bars"
      role="slider"
      tabIndex={0}
      aria-label="Step"
      aria-valuemin={1}
      aria-valuemax={newest}
      aria-valuenow={held ? held.index + 1 : newest}
      aria-valuetext={held ? stepSentence(held.step, held.index) : "The newest step is followed"}
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
      <svg width={width.value} height={STRIP_HEIGHT} viewBox={`0 0 ${width.value} ${STRIP_HEIGHT}`} aria-hidden="true">
        <path class="spec-grid" d={`M0 ${BARS.top}h${width.value}M0 ${BARS.top + BARS.height}h${width.value}`} />
        <Over strip={strip} over={over} />
        <Column class="spec-at" strip={strip} index={held?.index ?? newest - 1} />
        <path class="spec-time" d={strip.time} />
        <path class="spec-verified" d={strip.verified} />
        {[...strip.accepted].map(([key, d]) => (
          <path key={key} class={`spec-brought spec-${key}`} d={d} />
        ))}
        <path class="spec-reasons" d={strip.levels} />
        {strip.letters.map(({ x, letter }, index) => (
          <text key={index} x={x} y={LETTER_Y}>
            {letter}
          </text>
        ))}
      </svg>
    </div>
  );
}

/** Of its own, so that a pointer that moves draws nothing else again. */
function Over({ strip, over }: { strip: Strip; over: Signal<number | null> }) {
  return over.value === null ? null : <Column class="spec-over" strip={strip} index={over.value} />;
}

function Column({ strip, index, class: styled }: { strip: Strip; index: number; class: string }) {
  const place = index - strip.first;
  if (place < 0 || place >= strip.count) return null;
  return <rect class={styled} x={place * strip.pitch} y={0} width={strip.pitch} height={STRIP_HEIGHT} />;
}
