// The tree of the step that is looked at, live or held, with the buttons that hold it.

import { Scrolling } from "../shell/scrolling";
import "./tree.css";
import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { whole } from "../shell/format";
import type { Cursor } from "./cursor";
import { Drawing } from "./drawing";
import { onStepKey } from "./keys";
import { Listing } from "./listing";
import { useDrawing, useHeight, useWidth } from "./live";
import { nodeUnder, Pointed } from "./pointed";
import type { Trace } from "./trace";
import { treeSentence } from "./words";

const FIRST = { width: 600, height: 240 };

export interface ForestProps {
  trace: Trace;
  cursor: Cursor;
  tick: Signal<number>;
}

export function Forest({ trace, cursor, tick }: ForestProps) {
  const box = useRef<HTMLElement>(null);
  const room = { width: useWidth(box, FIRST.width).value, height: useHeight(box, FIRST.height).value };
  const entire = useSignal(true);
  const brief = useRef(false);
  const over = useSignal<string | null>(null);
  const listed = useSignal(false);
  useDrawing(box, tick)();
  const held = cursor.held.value !== null;
  const shown = cursor.shown;
  if (!shown) return null;
  const { step, index } = shown;
  // Trees that come one after the other are drawn alike: once one of them had to be in words, all are.
  const live = !held && !trace.ended;
  const extent = !entire.value ? "large" : live && brief.current ? "words" : "whole";
  return (
    <section class="spec-part" aria-labelledby="spec-tree-title">
      <header>
        <h3 id="spec-tree-title">{held ? `Tree of step ${whole(index + 1)}` : "Newest tree"}</h3>
        <div class="spec-buttons">
          <button type="button" aria-label="Step before" onClick={() => cursor.move(-1)}>
            <span aria-hidden="true">◀</span>
          </button>
          <button type="button" class="spec-hold" onClick={() => (held ? cursor.follow() : cursor.pause())}>
            {held ? "Follow" : "Pause"}
          </button>
          <button type="button" aria-label="Step after" onClick={() => cursor.move(1)}>
            <span aria-hidden="true">▶</span>
          </button>
          <button type="button" onClick={() => cursor.best()}>
            Best step
          </button>
        </div>
      </header>
      <Scrolling
        class="spec-box"
        label="Tree; arrow keys go from step to step"
        box={box}
        onKeyDown={onStepKey(cursor, false)}
        onPointerOver={(event) => {
          over.value = nodeUnder(event.target);
        }}
        onPointerLeave={() => {
          over.value = null;
        }}
      >
        {step.tree ? (
          <Drawing
            index={index}
            step={step}
            tree={step.tree}
            room={room}
            extent={extent}
            onDrawn={(words) => {
              brief.current = words;
            }}
          />
        ) : (
          <p class="spec-missing">
            The server told this step without its tree, as it does where the connection is slow or was lost for a while.
            It had {treeSentence(step)}
          </p>
        )}
      </Scrolling>
      <div class="spec-below">
        <Pointed over={over} shown={shown} />
        <button
          type="button"
          aria-pressed={entire.value}
          onClick={() => {
            entire.value = !entire.value;
          }}
        >
          Whole tree
        </button>
      </div>
      {step.tree && (
        <details
          onToggle={(event) => {
            listed.value = event.currentTarget.open;
          }}
        >
          <summary>The same as a table</summary>
          {listed.value && (
            <Scrolling class="spec-wide" label="Nodes of the tree">
              <Listing step={step} tree={step.tree} />
            </Scrolling>
          )}
        </details>
      )}
    </section>
  );
}
