// The server's own figures, asked for once a second while they are looked at.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { ViewProps } from "../shell/view";
import type { Server } from "../wire/server";
import { Board, type Spans } from "./board";
import { Chart } from "./chart";
import { Choices } from "./choices";
import { Controls } from "./controls";
import { ANSWERS, CountTable, REPLIES } from "./counts";
import "./dashboard.css";
import { Depths } from "./depths";
import FAMILIES from "./families.json";
import { figures } from "./figures";
import { Histogram, LAG, SPREADS } from "./histogram";
import { curvesOf, PLOTS, watchedSince } from "./plots";

export default function View({ server, shown }: ViewProps) {
  const board = useMemo(
    () =>
      new Board({
        url: server.url("metrics"),
        headers: () => server.headers,
        now: () => (performance.timeOrigin + performance.now()) / 1000,
      }),
    [server],
  );
  const [paused, pause] = useState(false);
  usePolling(board, server, shown && !paused);
  board.tick.value; // drawn again with each scrape
  const spans = board.spans();
  return (
    <main class="dashboard">
      <h2>Dashboard</h2>
      <p class="dashboard-state" data-state={board.state.value}>
        {board.sentence.value && <span class="bar">{board.sentence.value}</span>}
        <span role="status">{paused && "Paused: the figures stand still until you go on."}</span>
      </p>
      <p class="unseen" role="status">
        {board.spoken.value}
      </p>
      <Controls board={board} empty={spans === null} paused={paused} pause={pause} />
      {spans && <Figures board={board} spans={spans} />}
    </main>
  );
}

/** Asks while the figures are wanted and the page is not hidden. A new key is tried at once. */
function usePolling(board: Board, server: Server, wanted: boolean): void {
  const key = server.key.value;
  useEffect(() => {
    const poll = () => {
      if (wanted && !document.hidden) board.poller.start();
      else board.poller.stop();
    };
    poll();
    document.addEventListener("visibilitychange", poll);
    return () => {
      document.removeEventListener("visibilitychange", poll);
      board.poller.stop();
    };
  }, [board, key, wanted]);
}

function Figures({ board, spans }: { board: Board; spans: Spans }) {
  const seconds = board.minutes.value * 60;
  const rows = board.history.within(seconds);
  const [oldest, newest] = [board.history.rows[0], board.history.newest];
  const note = oldest && newest ? watchedSince(oldest.at, newest.at, seconds) : "";
  return (
    <>
      {!spans.always.increase(FAMILIES.generated) && (
        <p class="dashboard-empty">
          No reply yet: <a href="#/chat">ask something in the chat</a>, and its figures appear here.
        </p>
      )}
      <dl class="dashboard-figures">
        {figures(board.history, spans).map(({ id, label, value, note }) => (
          <div key={id} data-figure={id}>
            <dt>{label}</dt>
            <dd>
              <strong>{value}</strong>
              <span class="dashboard-note">{note}</span>
            </dd>
          </div>
        ))}
      </dl>
      <div class="dashboard-grid">
        {PLOTS.map((plot) => {
          const curves = curvesOf(plot, board.history, rows);
          return (
            curves.length > 0 && (
              <Chart key={plot.id} plot={plot} curves={curves} rows={rows} seconds={seconds} note={note} />
            )
          );
        })}
        {SPREADS.map((shown) => (
          <Histogram key={shown.id} shown={shown} spans={spans} />
        ))}
        <Depths spans={spans} />
        <Choices spans={spans} />
        <CountTable table={REPLIES} span={spans.always} />
      </div>
      <details class="dashboard-server">
        <summary>For whoever runs the server: lateness of its event loop, HTTP answers</summary>
        <div class="dashboard-grid">
          <Histogram shown={LAG} spans={spans} />
          <CountTable table={ANSWERS} span={spans.always} />
        </div>
      </details>
    </>
  );
}
