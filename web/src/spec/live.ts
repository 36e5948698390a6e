// When parts of the view are drawn again: rarely while they cannot be seen, and figures only as often as they can be read.

import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

const UNSEEN_MS = 1000; // still drawn now and then, for whoever reads the page without looking at it

/**
 * What a component, or an effect, calls to be run again with the tick while the element can be seen, and now and then
 * while it cannot.
 */
export function useDrawing(element: RefObject<Element | null>, tick: ReadonlySignal<number>): () => void {
  const visible = useVisible(element);
  const rest = useSlow(tick, UNSEEN_MS);
  return () => void (visible.value ? tick : rest).value;
}

/** Whether the element can be seen; true where the browser cannot tell. */
function useVisible(element: RefObject<Element | null>): ReadonlySignal<boolean> {
  const visible = useSignal(true);
  useEffect(() => {
    if (!element.current || typeof IntersectionObserver === "undefined") return;
    const observer = new IntersectionObserver((entries) => {
      visible.value = entries[entries.length - 1]?.isIntersecting ?? true;
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, visible]);
  return visible;
}

/** Changes with the tick, at most once in `ms`, and never misses the last change. */
export function useSlow(tick: ReadonlySignal<number>, ms: number): ReadonlySignal<number> {
  const slow = useSignal(0);
  useEffect(() => {
    let timer: number | undefined;
    let seen = -1;
    const look = () => {
      timer = undefined;
      if (seen === tick.peek()) return;
      seen = tick.peek();
      slow.value += 1;
      timer = window.setTimeout(look, ms);
    };
    const stop = tick.subscribe(() => timer ?? look());
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [tick, ms, slow]);
  return slow;
}

/** How many of `count` parts are on the page by now: one more with each frame, so that none of them makes it late. */
export function useParts(count: number): number {
  const parts = useSignal(0);
  useEffect(() => {
    if (parts.value >= count) return;
    const frame = requestAnimationFrame(() => {
      parts.value += 1;
    });
    return () => cancelAnimationFrame(frame);
  }, [parts, parts.value, count]);
  return Math.min(parts.value, count);
}

/** The element's width in CSS pixels as it changes; `first` until it is known. */
export function useWidth(element: RefObject<Element | null>, first: number): ReadonlySignal<number> {
  return useExtent(element, "width", first);
}

/** The same of its height. */
export function useHeight(element: RefObject<Element | null>, first: number): ReadonlySignal<number> {
  return useExtent(element, "height", first);
}

function useExtent(
  element: RefObject<Element | null>,
  which: "width" | "height",
  first: number,
): ReadonlySignal<number> {
  const extent = useSignal(first);
  useEffect(() => {
    if (!element.current || typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver((entries) => {
      const seen = entries[entries.length - 1]?.contentRect[which] ?? 0;
      if (seen > 0) extent.value = Math.floor(seen);
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, which, extent]);
  return extent;
}
