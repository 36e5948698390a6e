// A part that is scrolled where it does not fit, by keyboard too.

import type { ComponentChildren, RefObject } from "preact";

export interface ScrollingProps {
  class: string;
  /** What is in it. */
  label: string;
  box?: RefObject<HTMLElement | null>;
  onKeyDown?(event: KeyboardEvent): void;
  onPointerOver?(event: PointerEvent): void;
  onPointerLeave?(event: PointerEvent): void;
  children: ComponentChildren;
}

export function Scrolling({ label, box, children, ...more }: ScrollingProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section aria-label={label} tabIndex={0} ref={box ?? null} {...more}>
      {children}
    </section>
  );
}
