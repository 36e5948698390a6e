// A view whose code is fetched when it is first shown.

import { useEffect, useState } from "preact/hooks";
import type { View, ViewProps } from "./view";

export interface LazyProps {
  load: () => Promise<{ default: View }>;
  props: ViewProps;
}

export function Lazy({ load, props }: LazyProps) {
  const [state, set] = useState<{ view: View } | "loading" | "failed">("loading");
  useEffect(() => {
    let wanted = true;
    const told = (next: { view: View } | "failed") => wanted && set(next);
    load().then(
      (module) => told({ view: module.default }),
      () => told("failed"),
    );
    return () => {
      wanted = false;
    };
  }, [load]);
  if (state === "loading") return null;
  if (state === "failed") {
    return (
      <p class="bar" role="alert">
        This part of the page could not be loaded; see that the server runs, then reload.
      </p>
    );
  }
  return <state.view {...props} />;
}
