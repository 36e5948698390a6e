// The plot's place on the page, its legend and what it says in words.

import { useEffect, useRef } from "preact/hooks";
import { milliseconds } from "../shell/format";
import { Swatch } from "../shell/swatch";
import type { Chart } from "./chart";
import { curve } from "./curve";
import type { Outcome } from "./outcome";
import { LANES } from "./plan";
import { STROKES } from "./strokes";

export interface PlotProps {
  outcome: Outcome;
  /** The replay's moment in milliseconds. */
  at: number;
}

export function Plot({ outcome, at }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const moment = useRef(at);
  moment.current = at;
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    let wanted = true;
    let forget = () => {};
    const draw = ({ Chart: Made }: typeof import("./chart")) => {
      if (!wanted) return;
      const { plain, speculating } = outcome.lanes;
      const made = new Made(element, { plain: curve(plain), speculating: curve(speculating) });
      chart.current = made;
      made.moment(moment.current / 1000);
      forget = () => {
        made.end();
        chart.current = null;
      };
    };
    import("./chart").then(draw, () => {}); // without the plot, the figures still say it all
    return () => {
      wanted = false;
      forget();
    };
  }, [outcome]);
  useEffect(() => chart.current?.moment(at / 1000), [at]);
  return (
    <figure class="race-plot">
      <figcaption>
        Tokens over time
        {LANES.map((name) => (
          <span key={name}>
            <Swatch stroke={STROKES[name]} /> {name}
          </span>
        ))}
      </figcaption>
      <div ref={place} class="race-canvas" role="img" aria-label={inWords(outcome)} />
    </figure>
  );
}

function inWords({ tokens, total }: Outcome): string {
  const told = LANES.map((name) => `${name} had ${tokens[name]} after ${milliseconds(total[name])}`);
  return `Tokens over time: ${told.join(", ")}.`;
}
