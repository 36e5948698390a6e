// The turns, oldest first, with the end in sight until the person scrolls away from it.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Parts } from "./parts";
import type { Room } from "./room";
import { Starters } from "./starters";
import type { TurnActions } from "./turn";

const NEAR_END = 48; // pixels from the end within which the log follows the text

export interface LogProps {
  room: Room;
  actions: TurnActions;
  /** Sends a prompt that is offered. */
  ask(text: string): void;
}

export function Log({ room, actions, ask }: LogProps) {
  room.shape.value;
  const { turns } = room.conversation;
  const { log, inside, toEnd, away } = useFollowing();
  const sent = turns.findLast(({ role }) => role === "user")?.key;
  useLayoutEffect(toEnd, [sent]); // what the person sends is in sight
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reachable by keyboard */}
      <div id="log" role="log" aria-live="off" aria-label="Conversation" tabIndex={0} ref={log}>
        <div class="chat-turns" ref={inside}>
          {turns.length === 0 && <Starters ask={ask} />}
          <Parts room={room} actions={actions} />
        </div>
      </div>
      {away && (
        <button
          type="button"
          id="newest"
          onClick={() => {
            toEnd();
            log.current?.focus({ preventScroll: true }); // the button goes
          }}
        >
          <span aria-hidden="true">↓</span> Newest
        </button>
      )}
    </>
  );
}

function useFollowing() {
  const log = useRef<HTMLDivElement>(null);
  const inside = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [away, leave] = useState(false);
  const toEnd = () => {
    follows.current = true;
    leave(false);
    if (log.current) log.current.scrollTop = log.current.scrollHeight;
  };
  useEffect(() => {
    const box = log.current;
    if (!box || !inside.current) return;
    let top = 0;
    const scrolled = () => {
      // The event comes late, when the log may have grown already: only a way up is somebody's wish to stay there.
      const ended = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
      follows.current = ended || (follows.current && box.scrollTop >= top);
      top = box.scrollTop;
      leave(!follows.current);
    };
    box.addEventListener("scroll", scrolled);
    // The text grows, or a bar or a taller composer takes room from the log.
    const sizes = new ResizeObserver(() => follows.current && toEnd());
    sizes.observe(box);
    sizes.observe(inside.current);
    return () => {
      box.removeEventListener("scroll", scrolled);
      sizes.disconnect();
    };
  }, []);
  return { log, inside, toEnd, away };
}
