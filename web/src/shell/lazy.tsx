// A view whose code is fetched when it is first shown.

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

const SOON_MS = 300; // what is there by then needs no word before it

export interface LazyProps<Props extends object> {
  load: () => Promise<{ default: FunctionComponent<Props> }>;
  props: Props;
}

export function Lazy<Props extends object>({ load, props }: LazyProps<Props>) {
  const [state, set] = useState<{ view: FunctionComponent<Props> } | "coming" | "late" | "failed">("coming");
  useEffect(() => {
    let wanted = true;
    const late = setTimeout(() => set("late"), SOON_MS);
    const told = (next: { view: FunctionComponent<Props> } | "failed") => {
      clearTimeout(late);
      if (wanted) set(next);
    };
    load().then(
      (module) => told({ view: module.default }),
      () => told("failed"),
    );
    return () => {
      wanted = false;
      clearTimeout(late);
    };
  }, [load]);
  if (state === "coming") return null;
  if (state === "late") return <p class="coming">Loading …</p>;
  if (state === "failed") {
    return (
      <p class="bar" role="alert">
        This part of the page could not be loaded; see that the server runs, then reload.
      </p>
    );
  }
  return <state.view {...props} />;
}
