// A step's tree as a table, for whoever cannot use the drawing or wants all of its figures.

import type { Step, StepTree } from "../wire/events";
import { originOf } from "./origins";
import { fatesOf } from "./tree";
import { FATES, visible } from "./words";

export function Listing({ step, tree }: { step: Step; tree: StepTree }) {
  const fates = fatesOf(step, tree);
  return (
    <table class="spec-table spec-listing">
      <thead>
        <tr>
          <th scope="col">Node</th>
          <th scope="col" class="spec-said">
            Text
          </th>
          <th scope="col">After</th>
          <th scope="col" class="spec-said">
            Guessed by
          </th>
          <th scope="col">Estimate</th>
          <th scope="col">Chance</th>
          <th scope="col" class="spec-said">
            Verdict
          </th>
        </tr>
      </thead>
      <tbody>
        {tree.texts.map((text, node) => (
          <tr key={node}>
            <th scope="row">{node}</th>
            <td class="spec-said spec-mono">{visible(text)}</td>
            <td>{node === 0 ? "–" : tree.parents[node]}</td>
            <td class="spec-said">{node === 0 ? "–" : originOf(tree.sources[node] ?? "").label}</td>
            <td>{node === 0 ? "–" : tree.estimates[node]?.toFixed(3)}</td>
            <td>{node === 0 ? "–" : tree.chances[node]?.toFixed(3)}</td>
            <td class="spec-said">{FATES[fates[node] ?? "rejected"]}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
