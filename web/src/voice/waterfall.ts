// One turn's times as rows to draw: while the person spoke, after that, and when the person broke in. Each group has a
// scale of its own, since the first takes seconds and the second should not.

import { milliseconds, plural } from "../shell/format";
import type { Turn } from "./turn";

export interface Row {
  name: string;
  /** Moments, in milliseconds from the group's beginning. */
  ticks: number[];
  /** From the group's beginning to here; null: no bar. */
  until: number | null;
  note: string;
}

export interface Group {
  name: string;
  /** Milliseconds of its whole width, at least 1. */
  span: number;
  rows: Row[];
}

export function waterfall(turn: Turn): Group[] {
  return [whileSpeaking(turn), afterwards(turn), breakingIn(turn)].filter((group) => group !== null);
}

function whileSpeaking({ begun, appends, ready, ended }: Turn): Group | null {
  const sent = appends.map((at) => at - begun);
  if (sent.length === 0) return null;
  const computed = ready.map(({ at }) => at - begun);
  const last = ready.at(-1);
  return {
    name: "While you spoke",
    span: Math.max(1, ended === null ? 0 : ended - begun, ...sent, ...computed),
    rows: [
      { name: "Words sent", ticks: sent, until: null, note: plural(sent.length, "time") },
      {
        name: "Prompt ready",
        ticks: computed,
        until: null,
        note: last ? `${last.cached} of ${last.tokens} tokens` : "not yet",
      },
    ],
  };
}

function afterwards({ ended, asked, firstText, firstClause, firstSound }: Turn): Group | null {
  if (ended === null) return null;
  const row = (name: string, at: number | null): Row[] =>
    at === null ? [] : [{ name, ticks: [], until: at - ended, note: milliseconds(at - ended) }];
  const rows = [
    ...row("Reply asked for", asked),
    ...row("First text", firstText),
    ...row("First clause", firstClause),
    ...row("Voice begins", firstSound),
  ];
  return { name: "After your turn", span: longest(rows), rows };
}

function breakingIn({ brokeIn, cancelled }: Turn): Group | null {
  if (brokeIn === null || cancelled === null) return null;
  const until = cancelled - brokeIn;
  const rows = [{ name: "Reply ended", ticks: [], until, note: milliseconds(until) }];
  return { name: "After you broke in", span: longest(rows), rows };
}

const longest = (rows: Row[]) => Math.max(1, ...rows.map(({ until }) => until ?? 0));
