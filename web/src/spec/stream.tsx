// The reply's text, token by token, in the colours of where each came from.

import "./tokens.css";
import { effect, type ReadonlySignal, type Signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { plural } from "../shell/format";
import { Card } from "./card";
import type { Cursor } from "./cursor";
import { TokenList } from "./list";
import { useDrawing } from "./live";
import { originOf } from "./origins";
import type { Trace } from "./trace";

const HANDS = ["wheel", "touchmove", "pointerdown", "keydown"] as const;
const REACH_MS = 300; // in which a scroll is a person's
const FRAMES = 4; // until the browser has set what came
const AT_END = 8; // CSS pixels from the end that still count as being there

export interface StreamProps {
  trace: Trace;
  tick: ReadonlySignal<number>;
  /** For what is read rather than watched. */
  slow: ReadonlySignal<number>;
  cursor: Cursor;
}

export function Stream({ trace, tick, slow, cursor }: StreamProps) {
  const frame = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<TokenList | null>(null);
  const draw = useDrawing(frame, tick);
  const active = useSignal<number | null>(null);

  useEffect(() => {
    const root = box.current;
    if (!root) return;
    root.textContent = "";
    const tokens = new TokenList(root);
    list.current = tokens;
    active.value = null;
    let following = true;
    let touched = Number.NEGATIVE_INFINITY; // when a person last did what may scroll
    let settling = 0; // frames in which heights may still become known after tokens came or went
    let next = 0; // the frame that is asked for
    const settle = () => {
      settling -= 1;
      toEnd();
      next = settling > 0 ? requestAnimationFrame(settle) : 0;
    };
    const touch = () => {
      touched = performance.now();
    };
    const toEnd = () => {
      if (following && active.peek() === null) root.scrollTop = root.scrollHeight;
    };
    // While tokens come the browser scrolls too: where old ones went, and where heights of lines became known.
    const scrolled = () => {
      if (following && settling > 0 && performance.now() - touched > REACH_MS) toEnd();
      else following = root.scrollHeight - root.scrollTop - root.clientHeight < AT_END;
    };
    root.addEventListener("scroll", scrolled);
    for (const kind of HANDS) root.addEventListener(kind, touch, { passive: true });
    // Lines get their true height when they come into view, and the end moves away under whoever went there.
    root.addEventListener("contentvisibilityautostatechange", toEnd);
    const stop = effect(() => {
      draw();
      tokens.update(trace, cursor.shown?.index ?? null);
      toEnd();
      settling = FRAMES;
      next ||= requestAnimationFrame(settle);
    });
    return () => {
      stop();
      cancelAnimationFrame(next);
      root.removeEventListener("scroll", scrolled);
      for (const kind of HANDS) root.removeEventListener(kind, touch);
      root.removeEventListener("contentvisibilityautostatechange", toEnd);
    };
  }, [trace, tick, cursor, active]);

  const choose = (index: number | null) => {
    const step = index === null ? undefined : trace.token(index)?.step;
    if (step !== undefined && step !== null) cursor.hold(step);
  };
  const showFocused = () => {
    active.value = list.current?.indexOf(document.activeElement) ?? null;
  };
  return (
    <section class="spec-part" aria-labelledby="spec-stream-title">
      <h3 id="spec-stream-title">Tokens by origin</h3>
      <Legend trace={trace} slow={slow} />
      <Before trace={trace} slow={slow} />
      <div ref={frame} class="spec-stream" onPointerLeave={showFocused}>
        <div
          ref={box}
          class="spec-tokens"
          role="listbox"
          aria-label="Tokens of the reply; Enter shows the tree of a token's step"
          aria-multiselectable="true"
          onPointerMove={(event) => {
            active.value = list.current?.indexOf(event.target) ?? active.value;
          }}
          onFocusIn={showFocused}
          onFocusOut={() => {
            active.value = null;
          }}
          onClick={(event) => {
            const index = list.current?.indexOf(event.target) ?? null;
            if (index !== null) list.current?.focus(index);
            choose(index);
          }}
          onKeyDown={(event) => {
            if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
            if (event.key === "Escape" && active.value !== null) active.value = null;
            else if (event.key === "Enter" || event.key === " ") choose(list.current?.indexOf(event.target) ?? null);
            else if (!list.current?.key(event.key)) return;
            event.preventDefault();
            event.stopPropagation();
          }}
        />
        <TokenCard trace={trace} active={active} list={list} />
      </div>
    </section>
  );
}

interface TokenCardProps {
  trace: Trace;
  active: Signal<number | null>;
  list: { readonly current: TokenList | null };
}

function TokenCard({ trace, active, list }: TokenCardProps) {
  const card = useRef<HTMLDivElement>(null);
  const index = active.value;
  const token = index === null ? undefined : trace.token(index);
  useLayoutEffect(() => {
    const element = index === null ? undefined : list.current?.element(index);
    if (!element || !card.current) return;
    place(card.current, element);
    element.setAttribute("aria-describedby", card.current.id);
    return () => element.removeAttribute("aria-describedby");
  }, [index, list]);
  return (
    token && (
      <div ref={card} id="spec-card" class="spec-card" role="tooltip">
        <Card token={token} step={token.step === null ? undefined : trace.step(token.step)} />
      </div>
    )
  );
}

/** Puts the card below the last line of the token, within the width of the whole. */
function place(card: HTMLElement, token: HTMLElement): void {
  const rects = token.getClientRects();
  const at = rects[rects.length - 1];
  const within = card.parentElement?.getBoundingClientRect();
  if (!at || !within) return;
  const left = Math.min(at.left - within.left, within.width - card.offsetWidth);
  card.style.left = `${Math.max(0, left)}px`;
  card.style.top = `${at.bottom - within.top + 2}px`;
}

/** What is not shown any more. */
function Before({ trace, slow }: { trace: Trace; slow: ReadonlySignal<number> }) {
  void slow.value;
  return trace.droppedTokens > 0 ? (
    <p>The newest of the reply's tokens; {plural(trace.droppedTokens, "token")} came before them.</p>
  ) : null;
}

function Legend({ trace, slow }: { trace: Trace; slow: ReadonlySignal<number> }) {
  void slow.value;
  const counts = [...trace.tally.tokens].sort(([, a], [, b]) => b - a);
  return (
    <ul class="spec-legend" aria-label="Tokens by origin">
      {counts.map(([source, count]) => {
        const { key, joint, label } = originOf(source);
        return (
          <li key={source}>
            <span class={`spec-token spec-${key}${joint ? " spec-joint" : ""}`}>{label}</span> {plural(count, "token")}
          </li>
        );
      })}
    </ul>
  );
}
