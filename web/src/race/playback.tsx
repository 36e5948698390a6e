// The controls of the replay.

import { useEffect } from "preact/hooks";
import { milliseconds } from "../shell/format";
import { LITTLE_MOTION, useMedia } from "../shell/media";
import { type Replay, SPEEDS } from "./replay";
import type { Room } from "./room";

export interface PlaybackProps {
  room: Room;
  /** null: there is nothing to play yet. */
  replay: Replay | null;
  /** Milliseconds. */
  at: number;
  playing: boolean;
}

const NAMES: Record<(typeof SPEEDS)[number], string> = { 1: "true speed", 0.5: "half speed", 0.25: "quarter speed" };

export function Playback({ room, replay, at, playing }: PlaybackProps) {
  const calm = useMedia(LITTLE_MOTION);
  const length = replay?.length ?? 0;
  useEffect(() => {
    if (calm && playing) room.seek(length);
  }, [calm, playing]);
  return (
    <fieldset class="race-playback" disabled={replay === null}>
      <legend class="unseen">Watch side by side</legend>
      {calm ? (
        <p class="race-quiet">
          Your system asks for little motion, so the end is shown; move the slider to see any other moment.
        </p>
      ) : (
        <>
          <button type="button" id="race-play" class="race-main" onClick={() => room.toggle()}>
            {playing ? "Pause" : at < length ? "Go on" : "Watch side by side"}
          </button>
          <div>
            <label for="race-speed">Speed</label>
            <select
              id="race-speed"
              value={String(replay?.speed ?? 1)}
              onChange={({ currentTarget }) => room.pace(Number(currentTarget.value))}
            >
              {SPEEDS.map((speed) => (
                <option key={speed} value={String(speed)}>
                  {NAMES[speed]}
                </option>
              ))}
            </select>
          </div>
        </>
      )}
      <div class="race-moment">
        <label for="race-moment">Moment</label>
        <input
          id="race-moment"
          type="range"
          min={0}
          max={Math.ceil(length)}
          step={1}
          value={Math.round(at)}
          aria-valuetext={`${milliseconds(at)} of ${milliseconds(length)}`}
          onInput={({ currentTarget }) => room.seek(Number(currentTarget.value))}
        />
      </div>
    </fieldset>
  );
}
