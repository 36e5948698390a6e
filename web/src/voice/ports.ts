// What the loop is and what it needs, for those around it.

import type { Clock } from "../wire/clock";
import type { Asking, Outlet } from "./session";
import type { Voice } from "./speech";

/** interrupted: the person broke in, and the server has not yet said that the reply has ended. */
export type State = "idle" | "listening" | "thinking" | "speaking" | "interrupted";

export interface Ports extends Outlet {
  /** How to ask now, or a sentence about a setting that is wrong. */
  asking(): Asking | string;
  /** Something that is shown has changed. */
  changed(): void;
  voice: Voice;
  clock: Clock;
}
