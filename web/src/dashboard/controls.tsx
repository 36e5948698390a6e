// How far back to look, a pause, and the figures as a file.

import { download } from "../shell/browser";
import { type Board, WINDOWS } from "./board";
import { csv } from "./csv";

export interface ControlsProps {
  board: Board;
  /** Nothing was heard from the server yet. */
  empty: boolean;
  paused: boolean;
  pause: (paused: boolean) => void;
}

export function Controls({ board, empty, paused, pause }: ControlsProps) {
  return (
    <div class="dashboard-controls">
      <fieldset>
        <legend>Recent means the last</legend>
        {WINDOWS.map((minutes) => (
          <label key={minutes}>
            <input
              type="radio"
              name="dashboard-minutes"
              checked={board.minutes.value === minutes}
              onChange={() => {
                board.minutes.value = minutes;
              }}
            />
            {minutes} min
          </label>
        ))}
      </fieldset>
      <button type="button" onClick={() => pause(!paused)}>
        {paused ? "Go on" : "Pause"}
      </button>
      <button
        type="button"
        disabled={empty}
        onClick={() => download({ name: "paceline-metrics.csv", type: "text/csv", content: csv(board.history) })}
      >
        Save as CSV
      </button>
    </div>
  );
}
