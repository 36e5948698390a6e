// Sentences that need the person: each says what happened, and beside it stands what can be done.

import type { ComponentChildren } from "preact";
import type { Room } from "./room";

const LONG = 120; // characters from which a sentence may have to be scrolled

interface BarProps {
  id: string;
  sentence: string;
  /** It came with something the person did, and is said at once. */
  alert?: boolean;
  children: ComponentChildren;
}

function Bar({ id, sentence, alert = false, children }: BarProps) {
  return (
    <div id={id} class="bar chat-bar" role={alert ? "alert" : undefined} hidden={sentence === ""}>
      <p class="sentence" tabIndex={sentence.length > LONG ? 0 : undefined}>
        {sentence}
      </p>
      {children}
    </div>
  );
}

export function Trouble({ room, askForKey }: { room: Room; askForKey(): void }) {
  room.shape.value;
  const { state, sentence } = room.news;
  return (
    <Bar id="trouble" sentence={sentence}>
      <button type="button" data-action="now" hidden={state !== "waiting"} onClick={() => room.hurry()}>
        Try now
      </button>
      <button type="button" data-action="key" hidden={state !== "locked"} onClick={askForKey}>
        Enter a key
      </button>
    </Bar>
  );
}

/** dismissed: the person has read it. */
export function Notices({ room, dismissed }: { room: Room; dismissed(): void }) {
  room.shape.value;
  const { notice } = room.conversation;
  const { shelf } = room.records;
  return (
    <>
      <Bar id="notice" sentence={notice?.text ?? ""} alert>
        <button type="button" data-action="retry" hidden={notice?.action !== "retry"} onClick={() => room.retry()}>
          Try again
        </button>
        <button type="button" data-action="undo" hidden={notice?.action !== "undo"} onClick={() => room.undo()}>
          Undo
        </button>
        <button
          type="button"
          data-action="dismiss"
          onClick={() => {
            room.dismiss();
            dismissed();
          }}
        >
          Dismiss
        </button>
      </Bar>
      <Bar id="kept" sentence={shelf.notice.value} alert>
        <button
          type="button"
          onClick={() => {
            shelf.notice.value = "";
            dismissed();
          }}
        >
          Dismiss
        </button>
      </Bar>
    </>
  );
}
