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
import { useDrawing, useWidth } from "./live";
import { treeSentence } from "./words";

const FIRST_WIDTH = 600;
const READABLE = 0.8; // of the drawing's size; smaller only where the whole tree is asked for
const SMALLEST = 0.15;

export function Forest({ cursor, tick }: { cursor: Cursor; tick: Signal<number> }) {
  const box = useRef<HTMLElement>(null);
  const width = useWidth(box, FIRST_WIDTH).value;
  const entire = useSignal(false);
  const listed = useSignal(false);
  useDrawing(box, tick)();
  const held = cursor.held.value !== null;
  const shown = cursor.shown;
  if (!shown) return null;
  const { step, index } = shown;
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
      </header>
      <Scrolling
        class="spec-box"
        label="Tree; arrow keys go from step to step"
        box={box}
        onKeyDown={onStepKey(cursor, false)}
      >
        {step.tree ? (
          <Drawing index={index} step={step} tree={step.tree} room={width} least={entire.value ? SMALLEST : READABLE} />
        ) : (
          <p class="spec-missing">
            The server told this step without its tree, as it does where the connection is slow or was lost for a while.
            It had {treeSentence(step)}
          </p>
        )}
      </Scrolling>
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
