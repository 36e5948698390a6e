// What stands beside the conversation, or between it and the message field where there is no room beside.

import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useMedia } from "../shell/media";

/** Room for the steps beside the conversation and an open panel: there they are open by themselves. As in sides.css. */
export const WIDE = "(min-width: 75rem)";
/** A phone, or a page at a large zoom: nothing fits beside the conversation. As in sides.css. */
export const NARROW = "(width < 48rem)";

export interface Steps {
  open: boolean;
  toggle(): void;
  show(): void;
  /** Changes where other parts of the page may have come into sight or gone. */
  room: "wide" | "narrow" | "";
}

/**
 * Whether the steps are open: as the person wants it, and before that where there is room. They close by themselves only
 * where they would cover the conversation.
 */
export function useSteps(): Steps {
  const wanted: Signal<boolean | null> = useSignal(null);
  const wide = useMedia(WIDE);
  const narrow = useMedia(NARROW);
  const roomy = useRef(false);
  if (wide) roomy.current = true;
  if (narrow) roomy.current = false;
  const open = wanted.value ?? roomy.current;
  return {
    open,
    toggle: () => {
      wanted.value = !open;
    },
    show: () => {
      wanted.value = true;
    },
    room: wide ? "wide" : narrow ? "narrow" : "",
  };
}

/** Whether what has the keyboard's focus went away or cannot be seen, so that what is typed would go nowhere. */
export function focusLost(): boolean {
  const { activeElement, body } = document;
  return activeElement === null || activeElement === body || !activeElement.checkVisibility();
}
