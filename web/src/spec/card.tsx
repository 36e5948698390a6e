// What is known of one token: the step it came from, and the guesses that were made for its place.

import type { Step } from "../wire/events";
import { originOf } from "./origins";
import type { TracedToken } from "./provenance";
import { type Fate, type Guess, guessesFor } from "./tree";
import { FATES, probability, reasonSentence, stepSentence, visible } from "./words";

const MOST_GUESSES = 8;
const MARKS: Readonly<Partial<Record<Fate, string>>> = { accepted: "✓", met: "=" };

export interface CardProps {
  token: TracedToken;
  /** undefined where it is not known or no longer kept. */
  step: Step | undefined;
}

export function Card({ token, step }: CardProps) {
  return (
    <>
      <p>
        <strong class="spec-mono">{visible(token.text)}</strong> by {originOf(token.source).label}
      </p>
      {step === undefined || token.step === null ? (
        <p>{token.step === null ? "The server did not say which step it came from." : "Its step is too long ago."}</p>
      ) : (
        <>
          <p>
            {stepSentence(step, token.step)} {reasonSentence(step)}
          </p>
          <Guesses guesses={step.tree && guessesFor(step, step.tree, token.node)} />
        </>
      )}
    </>
  );
}

function Guesses({ guesses }: { guesses: Guess[] | null }) {
  if (guesses === null) return <p>The guesses of this step were not told.</p>;
  if (guesses.length === 0) return <p>No guess was checked for this place.</p>;
  return (
    <>
      <p>Guesses for this place, with the drafter's estimate and the planner's chance:</p>
      <ul>
        {guesses.slice(0, MOST_GUESSES).map(({ node, text, source, estimate, chance, fate }) => (
          <li key={node} class={`spec-${fate}`}>
            <span aria-hidden="true">{MARKS[fate] ?? "✗"}</span> <span class="spec-mono">{visible(text)}</span>{" "}
            {FATES[fate]}, {originOf(source).label}, {probability(estimate)}, {probability(chance)}
          </li>
        ))}
      </ul>
      {guesses.length > MOST_GUESSES && <p>And {guesses.length - MOST_GUESSES} more, all in the step's table.</p>}
    </>
  );
}
