// Where the person writes, with what the server has computed of it already.

import type { RefObject } from "preact";
import { whole } from "../shell/format";
import type { Room } from "./room";

export interface ComposerProps {
  room: Room;
  field: RefObject<HTMLTextAreaElement | null>;
  /** Up in an empty field. */
  editLast(): void;
}

export function Composer({ room, field, editLast }: ComposerProps) {
  room.shape.value;
  const { busy, phase } = room.conversation;
  const draft = room.draft.value;
  return (
    <>
      <form
        id="composer"
        onSubmit={(event) => {
          event.preventDefault();
          room.say();
          field.current?.focus();
        }}
      >
        <label for="message" class="unseen">
          Message
        </label>
        <textarea
          id="message"
          ref={field}
          rows={1}
          dir="auto"
          placeholder="Message"
          enterkeyhint="send"
          aria-describedby="keys"
          value={draft}
          onInput={(event) => room.write(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.isComposing) return; // Enter also ends an input method's word
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              room.say();
            } else if (event.key === "ArrowUp" && draft === "" && !busy) {
              event.preventDefault();
              editLast();
            }
          }}
        />
        <button type="submit" id="send" hidden={busy}>
          Send
        </button>
        <button
          type="button"
          id="stop"
          hidden={!busy}
          disabled={phase === "stopping"}
          onClick={() => {
            room.stop();
            field.current?.focus();
          }}
        >
          Stop
        </button>
      </form>
      <p id="early" role="status">
        {room.early.value && "The reply is still on its way: Esc or Stop ends it, then Enter sends this."}
      </p>
      <div class="chat-below">
        <p id="keys">
          <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> starts a new line, <kbd>Esc</kbd> stops a reply.
        </p>
        <Ahead room={room} />
      </div>
    </>
  );
}

/** How much of the prompt is computed before it is sent. */
function Ahead({ room }: { room: Room }) {
  room.frames.tick.value;
  const { prefilled } = room.conversation;
  if (!prefilled) return null;
  const { tokens, ready } = prefilled;
  return (
    <div id="ahead">
      <progress max={Math.max(1, tokens)} value={Math.min(ready, tokens)} aria-labelledby="ahead-words" />
      <p id="ahead-words">
        {whole(ready)} of {whole(tokens)} prompt tokens are ready
        <span class="chat-wordy">; the last words may still change</span>
      </p>
    </div>
  );
}
