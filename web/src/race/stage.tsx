// What is seen of a race: the lanes, the replay, the verdict and the results.

import type { Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { FormValues } from "../settings/parse";
import { download } from "../shell/browser";
import { Difference } from "./difference";
import { exported } from "./export";
import { LaneCard } from "./lanecard";
import type { Outcome } from "./outcome";
import { LANES, type RaceForm, stillAsks } from "./plan";
import { Playback } from "./playback";
import { Plot } from "./plot";
import type { Room } from "./room";
import { Table } from "./table";
import { planWords, verdict } from "./words";

export interface StageProps {
  room: Room;
  form: RaceForm;
  /** The chat's. */
  settings: FormValues;
  /** The served model's name. */
  model: Signal<string>;
}

export function Stage({ room, form, settings, model }: StageProps) {
  const tick = room.frames.tick.value;
  const { race, outcome, replay } = room;
  const moment = room.moment();
  useEffect(() => {
    if (moment?.playing) room.frames.mark();
  }, [tick]); // each frame of a replay asks for the next
  const shown = race.phase !== "ready";
  const { plan } = race;
  // Not with each frame of a replay, for which the stage is drawn.
  const changed = useMemo(() => plan !== null && !stillAsks(form, settings, plan), [form, settings, plan]);
  const old = changed && !race.running;
  const top = useRef<HTMLParagraphElement>(null);
  useEffect(() => top.current?.scrollIntoView({ block: "nearest" }), [race.plan]); // a race has begun
  return (
    <div class={old ? "race-stage race-old" : "race-stage"}>
      {race.running && race.notice && <p class="bar">{race.notice}</p>}
      <p class="unseen" role="status">
        {room.spoken.value}
      </p>
      {race.running && !race.notice && (
        <p class="race-verdict race-undecided" ref={top}>
          <span>Not decided yet</span> The lanes run one after the other, and are compared when both are done.
        </p>
      )}
      <p class="race-changed" role="status">
        {old && "The form or the chat’s settings have changed; race again."}
      </p>
      <div id="race-verdict" role="status">
        {outcome && (
          <p class="race-verdict">
            {verdict(outcome).map((sentence) => (
              <span key={sentence}>{sentence} </span>
            ))}
          </p>
        )}
        {!outcome && race.notice && !race.running && (
          <p class="bar">
            {race.notice}
            {race.locked && (
              <>
                {" "}
                <a href="#/chat">Go to the chat, where the settings are.</a>
              </>
            )}
          </p>
        )}
      </div>
      {race.plan && (
        <p class="race-quiet race-ran">
          {race.running ? "Racing" : "Raced"}: {planWords(race.plan)}
        </p>
      )}
      {outcome && !outcome.comparison.same && <Difference found={outcome.comparison} />}
      {(race.running || replay) && (
        <Playback room={room} replay={replay} at={moment?.at ?? 0} playing={moment?.playing ?? false} />
      )}
      {shown && (
        <div class="race-lanes">
          {LANES.map((name) => (
            <LaneCard
              key={name}
              name={name}
              lane={race.lanes[name]}
              turn={name === race.first ? 0 : 1}
              phase={race.phase}
              at={moment?.at ?? null}
            />
          ))}
        </div>
      )}
      {shown && (
        <p class="race-quiet">
          <span class="race-run">Underlined</span>: several tokens from one step; solid and{" "}
          <span class="race-run race-odd">dotted</span> lines take turns.
        </p>
      )}
      {outcome && <Plot outcome={outcome} at={moment?.at ?? outcome.total.plain} />}
      {room.results.rows.length > 0 && <Table rows={room.results.rows} />}
      {outcome && (
        <button type="button" id="race-export" onClick={() => save(outcome, model.value)}>
          Save this run as JSON
        </button>
      )}
    </div>
  );
}

function save(outcome: Outcome, model: string): void {
  const run = exported(outcome, model, new Date());
  download({ name: "paceline-race.json", type: "application/json", content: `${JSON.stringify(run, null, 1)}\n` });
}
