// A piece of a plot's line, for its legend.

import "./swatch.css";
import type { Stroke } from "./canvas";

export function Swatch({ stroke: { token, dash } }: { stroke: Stroke }) {
  return (
    <svg class="swatch" viewBox="0 0 24 8" aria-hidden="true">
      <line x1="0" y1="4" x2="24" y2="4" stroke-dasharray={dash.join(" ")} style={{ stroke: `var(${token})` }} />
    </svg>
  );
}
