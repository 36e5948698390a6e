// How the view is read: its marks, letters and names in one place, out of the way until somebody asks.

import { type ReadonlySignal, useSignal } from "@preact/signals";
import { meanings } from "./origins";
import { reasonsOf } from "./strip";
import { type FigureName, meanings as figureMeanings } from "./told";
import type { Trace } from "./trace";

export interface LegendProps {
  trace: Trace;
  slow: ReadonlySignal<number>;
  figures: readonly FigureName[];
}

export function Legend(props: LegendProps) {
  const open = useSignal(false);
  return (
    <details
      onToggle={(event) => {
        open.value = event.currentTarget.open;
      }}
    >
      <summary>How to read this</summary>
      {open.value && <Words {...props} />}
    </details>
  );
}

function Words({ trace, slow, figures }: LegendProps) {
  void slow.value;
  const letters = reasonsOf(trace.steps).map(({ letter, name, sentence }) => `${letter} is ${name}: ${sentence}`);
  const origins = meanings(trace.tally.tokens.keys()).map(([label, meaning]) => `${label}: ${meaning}`);
  return (
    <dl class="spec-key">
      <dt>Tree</dt>
      <dd>
        One verify step: the pending token at the left, guesses behind it. Thick line and frame: accepted. Thick frame
        and =: the reply ended with it. Dashed and faded: not taken. Round: the model’s own token. A guess has two
        probabilities that it is right after the token before it: the drafter’s own (estimate), and what the planner
        made of it (chance).
      </dd>
      <dt>Strip</dt>
      <dd>
        A column for each step. Line: its time. Bar: nodes verified, filled with the colours of origins for the pending
        token and the guesses that were accepted. Below, by height and letter, why the planner verified so many.{" "}
        {letters.join(" ")}
      </dd>
      {origins.length > 0 && (
        <>
          <dt>Origins</dt>
          <dd>{origins.join("; ")}.</dd>
        </>
      )}
      <dt>Figures</dt>
      <dd>{figureMeanings(figures)}</dd>
      <dt>Tables</dt>
      <dd>
        By drafter, over the guesses whose place was reached: estimate is the mean probability that the drafter itself
        gave, chance what the planner made of it, and share how many were accepted. By depth: steps that guessed so
        deep, and those in which a guess of this depth was accepted.
      </dd>
    </dl>
  );
}
