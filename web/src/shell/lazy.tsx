// A view whose code is fetched when it is first shown.

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

export interface LazyProps<Props extends object> {
  load: () => Promise<{ default: FunctionComponent<Props> }>;
  props: Props;
}

export function Lazy<Props extends object>({ load, props }: LazyProps<Props>) {
  const [state, set] = useState<{ view: FunctionComponent<Props> } | "loading" | "failed">("loading");
  useEffect(() => {
    let wanted = true;
    const told = (next: { view: FunctionComponent<Props> } | "failed") => wanted && set(next);
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
