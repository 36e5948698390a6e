// What one turn's times say, in a sentence or two.

import { milliseconds } from "../shell/format";
import type { Turn } from "./turn";

const NOTABLE_MS = 50; // a shorter wait for the end of a turn is not worth a sentence

/** "" while there is nothing to tell. */
export function comparison(turn: Turn): string {
  const { heard, ended, firstText, firstClause, brokeIn, cancelled, cut } = turn;
  const sentences: string[] = [];
  if (ended !== null && firstText !== null) {
    sentences.push(`Text came ${milliseconds(firstText - ended)} after your turn had ended${known(turn)}.`);
    if (ended - heard >= NOTABLE_MS)
      sentences.push(`That the turn had ended was clear ${milliseconds(ended - heard)} after the last words.`);
    if (firstClause !== null)
      sentences.push(`The first clause was ready to be spoken after ${milliseconds(firstClause - ended)}.`);
  }
  if (brokeIn !== null && cancelled !== null)
    sentences.push(`You broke in: the reply had ended ${milliseconds(cancelled - brokeIn)} later.`);
  if (cut !== null)
    sentences.push(`The conversation keeps ${cut.heard} of its ${cut.length} characters, what you heard.`);
  return sentences.join(" ");
}

function known({ prompt, cached, ready }: Turn): string {
  const last = ready.at(-1);
  const told = prompt !== null && cached !== null ? { cached, tokens: prompt } : last; // the reply's own count once it is there
  return told ? `; ${told.cached} of ${told.tokens} prompt tokens were already computed` : "";
}
