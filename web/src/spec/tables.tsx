// What trees are tuned by: whose guesses are right and how well that was foreseen, and how deep guessing pays.

import type { ReadonlySignal } from "@preact/signals";
import { decimal, mean, milliseconds, percent, plural, whole } from "../shell/format";
import { Scrolling } from "../shell/scrolling";
import type { Trace } from "./trace";

export function Tables({ trace, tick }: { trace: Trace; tick: ReadonlySignal<number> }) {
  void tick.value;
  const { tally, steps } = trace;
  const share = (part: number, all: number) => percent(all === 0 ? null : part / all);
  return (
    <section class="spec-part" aria-labelledby="spec-tables-title">
      <h3 id="spec-tables-title">For tuning</h3>
      <p>
        Mean of the newest {plural(steps.length, "step")}: {decimal(mean(steps, (step) => step.nodes))} nodes,{" "}
        {decimal(mean(steps, (step) => step.accepted))} accepted, {decimal(mean(steps, (step) => step.emitted))} tokens,{" "}
        {milliseconds(mean(steps, (step) => step.ms))}.
        {tally.trees < tally.steps &&
          ` The tables know ${whole(tally.trees)} of the reply's ${plural(tally.steps, "step")}, those that came with their tree.`}
      </p>
      <Scrolling class="spec-tables" label="Drafters and depths">
        <table class="spec-table">
          <caption>By drafter</caption>
          <thead>
            <tr>
              <th scope="col">Drafter</th>
              <th scope="col">Guesses</th>
              <th scope="col">Accepted</th>
              <th scope="col">Estimate</th>
              <th scope="col">Chance</th>
              <th scope="col">Share</th>
            </tr>
          </thead>
          <tbody>
            {[...tally.drafters].map(([name, sums]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{sums.guesses}</td>
                <td>{sums.accepted}</td>
                <td>{share(sums.estimates, sums.judged)}</td>
                <td>{share(sums.chances, sums.judged)}</td>
                <td>{share(sums.accepted, sums.judged)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <table class="spec-table">
          <caption>By depth</caption>
          <thead>
            <tr>
              <th scope="col">Depth</th>
              <th scope="col">Guesses</th>
              <th scope="col">Steps</th>
              <th scope="col">Accepted</th>
              <th scope="col">Share</th>
            </tr>
          </thead>
          <tbody>
            {tally.depths.map((sums, index) => (
              <tr key={index}>
                <th scope="row">{index + 1}</th>
                <td>{sums.guesses}</td>
                <td>{sums.steps}</td>
                <td>{sums.accepted}</td>
                <td>{share(sums.accepted, sums.steps)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolling>
    </section>
  );
}
