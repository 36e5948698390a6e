// What every view of the page is given.

import type { Signal } from "@preact/signals";
import type { FunctionComponent } from "preact";
import type { FormValues } from "../settings/parse";
import type { Server } from "../wire/server";

export interface ViewProps {
  server: Server;
  settings: Signal<FormValues>;
  /** It can be seen; where it cannot, it goes on and draws nothing. */
  shown: boolean;
}

export type View = FunctionComponent<ViewProps>;
