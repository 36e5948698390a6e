// The figures at the top: one number each, with its unit and what it is of.

import type { Spans } from "./board";
import FAMILIES from "./families.json";
import type { History } from "./history";
import { level } from "./span";
import { amount, quantileText, seconds, share, whole } from "./units";

export interface Figure {
  /** For tests and styles. */
  id: string;
  label: string;
  /** With its unit; "–" where there is none yet. */
  value: string;
  note: string;
}

/** All of them, in order; one whose families the server does not have, or where nothing has happened yet, is "–". */
export function figures(history: History, { now, recent, always }: Spans): Figure[] {
  const rate = (family: { name: string }) => amount(now.rate(family));
  const running = level(history, FAMILIES.running);
  const waiting = level(history, FAMILIES.waiting);
  const busy = recent.increase(FAMILIES.generated) ? recent : always;
  const over = busy === recent ? "recently" : "since the start";
  const p50 = (family: { name: string }) => quantileText(busy.distribution(family), 0.5, seconds);
  const preempted = always.increase(FAMILIES.preemptions);
  return [
    { id: "running", label: "Running", value: whole(running), note: "replies under way" },
    { id: "waiting", label: "Waiting", value: whole(waiting), note: "requests without a place yet" },
    {
      id: "token-rate",
      label: "Tokens per second",
      value: rate(FAMILIES.generated),
      note: "all replies, now",
    },
    { id: "step-rate", label: "Steps per second", value: rate(FAMILIES.steps), note: "passes of the model, now" },
    {
      id: "per-step",
      label: "Tokens per step",
      value: amount(busy.ratio(FAMILIES.generated, FAMILIES.steps)),
      note: `all replies together, ${over}`,
    },
    {
      id: "acceptance",
      label: "Accepted guesses",
      value: share(busy.ratio(FAMILIES.accepted, FAMILIES.drafted)),
      note: `of those verified, ${over}`,
    },
    { id: "ttft", label: "First token (TTFT)", value: p50(FAMILIES.ttft), note: `half are sooner (p50), ${over}` },
    {
      id: "tpot",
      label: "Per token (TPOT)",
      value: p50(FAMILIES.tpot),
      note: `half are faster (p50), ${over}`,
    },
    {
      id: "prefix-hits",
      label: "Prompt from the cache",
      value: share(busy.ratio(FAMILIES.prefixHits, FAMILIES.prompt)),
      note: `of prompt tokens, ${over}`,
    },
    {
      id: "generated",
      label: "Tokens",
      value: whole(always.increase(FAMILIES.generated)),
      note: "since the start",
    },
    { id: "sockets", label: "Open sockets", value: whole(level(history, FAMILIES.sockets)), note: "realtime, now" },
    { id: "preemptions", label: "Preemptions", value: whole(preempted), note: "replies put back to make room" },
  ];
}
