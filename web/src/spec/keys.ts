// Keys that go from step to step.

import type { Cursor } from "./cursor";

const STRIDE = 10;

/** Does what the key asks; false where it asks for nothing here. slider: up and down are steps too, as on every slider. */
export function stepKey(cursor: Cursor, key: string, slider: boolean): boolean {
  const known: Record<string, () => void> = {
    ArrowLeft: () => cursor.move(-1),
    ArrowRight: () => cursor.move(1),
    Home: () => cursor.oldest(),
    End: () => cursor.follow(),
    ...(slider && {
      ArrowDown: () => cursor.move(-1),
      ArrowUp: () => cursor.move(1),
      PageDown: () => cursor.move(-STRIDE),
      PageUp: () => cursor.move(STRIDE),
    }),
  };
  const act = Object.hasOwn(known, key) ? known[key] : undefined;
  act?.();
  return act !== undefined;
}

/** The same as an event handler; keys pressed with a modifier are the browser's. */
export function onStepKey(cursor: Cursor, slider: boolean) {
  return (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (stepKey(cursor, event.key, slider)) event.preventDefault();
  };
}
