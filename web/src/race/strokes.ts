// How each lane is drawn over time.

import type { Stroke } from "../shell/canvas";
import type { LaneName } from "./plan";

export const STROKES: Record<LaneName, Stroke> = {
  plain: { token: "--origin-suffix", dash: [6, 4] },
  speculating: { token: "--accent", dash: [] },
};
