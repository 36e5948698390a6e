// Why the planner had as many guesses verified as it did, for a person.

export interface Reason {
  /** One letter, for where there is no room for more. */
  letter: string;
  name: string;
  sentence: string;
}

const REASONS: readonly Reason[] = [
  { letter: "B", name: "best", sentence: "one more guess would not have paid, or there was none." },
  { letter: "L", name: "budget", sentence: "no more guesses are allowed by the request or the server." },
  {
    letter: "W",
    name: "not worth it",
    sentence: "to check guesses would have cost more time than they promised to save.",
  },
  { letter: "N", name: "no guesses", sentence: "no drafter had one." },
  {
    letter: "R",
    name: "no room",
    sentence: "the reply's last token needs no guess, or the context, the step or the cache is full.",
  },
  { letter: "O", name: "off", sentence: "the request or the server allows no guesses." },
  { letter: "P", name: "prefill", sentence: "this step read the prompt and brought the first token." },
];
const UNTOLD: Reason = { letter: "?", name: "not told", sentence: "the server does not say why it verified so many." };

/** The reason by the name the server gives it; any other name stands for "not told". */
export function reasonOf(name: string | null | undefined): Reason {
  return REASONS.find((reason) => reason.name === name) ?? UNTOLD;
}

/** From 0: a height of its own for each reason, for where not even a letter fits. */
export function reasonLevel(reason: Reason): number {
  return REASONS.includes(reason) ? REASONS.indexOf(reason) : REASONS.length;
}

export const REASON_LEVELS = REASONS.length + 1;
