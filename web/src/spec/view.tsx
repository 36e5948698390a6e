// The speculation view: how one reply was made, while it is made and afterwards.

import "./spec.css";
import type { Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Bars } from "./bars";
import { Cursor } from "./cursor";
import { Forest } from "./forest";
import { Legend } from "./legend";
import { useParts, useSlow } from "./live";
import { FiguresPanel, SHOWN } from "./panel";
import { Stream } from "./stream";
import { Tables } from "./tables";
import type { Trace } from "./trace";

const READ_MS = 200; // figures that change faster cannot be read

export interface SpeculationProps {
  /** Of the reply to look at; null: there is none yet. */
  trace: Trace | null;
  /** Without a trace: there is a reply all the same, whose steps are not kept. */
  forgotten?: boolean;
  /** Changes once per frame in which the trace may have changed. */
  tick: Signal<number>;
}

export function SpeculationView({ trace, forgotten = false, tick }: SpeculationProps) {
  return (
    <section class="spec" aria-labelledby="spec-title">
      {trace ? <Reply trace={trace} tick={tick} /> : <Nothing forgotten={forgotten} />}
    </section>
  );
}

function Nothing({ forgotten }: { forgotten: boolean }) {
  return (
    <>
      <Title />
      <p class="spec-empty">
        {forgotten
          ? "The steps of replies that came before this page was loaded, or to another tab, are not kept; ask again to see new ones."
          : "Ask something, and see here how the reply is made: the tree of guesses that each step checks, which of them were right, and whose guess every token was."}
      </p>
    </>
  );
}

function Title() {
  return <h2 id="spec-title">Speculation</h2>;
}

/** Why no step of the reply is shown. */
function silence({ tally, ended }: Trace): string {
  if (tally.tokens.size > 0) {
    return "The server tells no steps for this reply, so it cannot be said whose guess each token was.";
  }
  if (ended) return "No step of this reply reached this page; ask again to see how a reply is made.";
  return "No step has come yet; the reply's next ones will be seen here.";
}

function Reply({ trace, tick }: { trace: Trace; tick: Signal<number> }) {
  const slow = useSlow(tick, READ_MS);
  const cursor = useMemo(() => new Cursor(trace), [trace]);
  void slow.value;
  const { tally } = trace;
  const stepped = tally.steps > 0;
  const begun = stepped || trace.tokens.length > 0;
  const parts = useParts(stepped ? 3 : 0);
  return (
    <>
      <header class="spec-head">
        <Title />
        {begun && <Legend trace={trace} slow={slow} figures={SHOWN} />}
      </header>
      {trace.off && (
        <p class="spec-empty">
          Speculation is off for this reply: each step checks no guess and brings one token. Switch it on beside the
          figures above the message to compare.
        </p>
      )}
      {!stepped && <p class="spec-empty">{silence(trace)}</p>}
      {stepped && <Forest trace={trace} tick={tick} cursor={cursor} />}
      {stepped && parts > 0 && <Bars trace={trace} tick={tick} slow={slow} cursor={cursor} />}
      {(parts > 1 || !stepped) && begun && <Stream trace={trace} tick={tick} slow={slow} cursor={cursor} />}
      {parts > 2 && <FiguresPanel trace={trace} tick={slow} />}
      {parts > 2 && tally.trees > 0 && <Tables trace={trace} tick={slow} />}
    </>
  );
}
