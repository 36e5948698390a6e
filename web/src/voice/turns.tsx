// The times of the newest turn, and the conversation as the server has it.

import { comparison } from "./comparison";
import type { VoiceLoop } from "./loop";
import type { Line } from "./record";
import type { Turn } from "./turn";
import { type Group, type Row, waterfall } from "./waterfall";

const SHOWN_BEFORE = 3;

/** before: turns before that one, newest last. */
export function Times({ turn, before }: { turn: Turn | null; before: Turn[] }) {
  const sentence = turn ? comparison(turn) : "";
  const earlier = before.slice(-SHOWN_BEFORE).reverse().map(comparison);
  return (
    <section aria-labelledby="voice-times">
      <h2 id="voice-times">Times of the turn</h2>
      {turn === null && <p class="voice-empty">They are shown once somebody speaks.</p>}
      {turn && waterfall(turn).map((group) => <Chart key={group.name} group={group} />)}
      {sentence !== "" && (
        <p class="voice-comparison" id="voice-comparison">
          {sentence}
        </p>
      )}
      {earlier.length > 0 && (
        <>
          <h3>The turns before, newest first</h3>
          <ol class="voice-before">
            {earlier.map((text, i) => (
              <li key={before.length - i}>{text}</li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

function Chart({ group: { name, span, rows } }: { group: Group }) {
  return (
    <table class="voice-chart">
      <caption>{name}</caption>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            <td class="voice-track" aria-hidden="true">
              <Track row={row} span={span} />
            </td>
            <td class="voice-figure">{row.note}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Track({ row: { ticks, until }, span }: { row: Row; span: number }) {
  const share = (ms: number) => `${(100 * ms) / span}%`;
  return (
    <div>
      {until !== null && <span class="voice-bar" style={{ width: share(until) }} />}
      {ticks.map((at) => (
        <span key={at} class="voice-tick" style={{ left: share(at) }} />
      ))}
    </div>
  );
}

export function Talk({ loop }: { loop: VoiceLoop }) {
  const { lines } = loop.conversation;
  return (
    <section aria-labelledby="voice-talk">
      <h2 id="voice-talk">The conversation, as the server has it</h2>
      {lines.length === 0 && <p class="voice-empty">Nothing was said yet.</p>}
      <div role="log" aria-labelledby="voice-talk">
        <ol class="voice-lines">
          {lines.map((line, i) => (
            <Said key={i} line={line} />
          ))}
        </ol>
      </div>
    </section>
  );
}

function Said({ line: { role, text, cut } }: { line: Line }) {
  return (
    <li class={`voice-line voice-${role}`}>
      <strong>{role === "user" ? "You" : "Reply"}</strong> <span dir="auto">{text}</span>
      {cut && <em class="voice-cut"> … cut where you broke in</em>}
    </li>
  );
}
