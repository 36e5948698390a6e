// Something that is on or off, and changes at once.

import type { ComponentChildren } from "preact";

export interface SwitchProps {
  id?: string;
  on: boolean;
  change(on: boolean): void;
  /** Its name. */
  children: ComponentChildren;
}

export function Switch({ id, on, change, children }: SwitchProps) {
  return (
    <label class="check">
      <input
        id={id}
        type="checkbox"
        // biome-ignore lint/a11y/useAriaPropsForRole: a checkbox tells its state itself
        role="switch"
        checked={on}
        onChange={(event) => change(event.currentTarget.checked)}
      />{" "}
      {children}
    </label>
  );
}
