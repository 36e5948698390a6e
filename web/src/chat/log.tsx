// The turns, oldest first, with the end in sight until the person scrolls away from it.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Parts } from "./parts";
import type { Room } from "./room";
import type { TurnActions } from "./turn";

const NEAR_END = 48; // pixels from the end within which the log follows the text

export function Log({ room, actions }: { room: Room; actions: TurnActions }) {
  room.shape.value;
  const { turns } = room.conversation;
  const { log, inside, toEnd } = useFollowing();
  const sent = turns.findLast(({ role }) => role === "user")?.key;
  useLayoutEffect(toEnd, [sent]); // what the person sends is in sight
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reachable by keyboard
    <div id="log" role="log" aria-live="off" aria-label="Conversation" tabIndex={0} ref={log}>
      <div class="chat-turns" ref={inside}>
        {turns.length === 0 && <Empty />}
        <Parts room={room} actions={actions} />
      </div>
    </div>
  );
}

function Empty() {
  return (
    <div id="empty">
      <p class="chat-lead">Ask the model something.</p>
      <p>Guesses ride ahead, the model checks them all in one pass, and the text is exactly its own.</p>
    </div>
  );
}

function useFollowing() {
  const log = useRef<HTMLDivElement>(null);
  const inside = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const toEnd = () => {
    follows.current = true;
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
  return { log, inside, toEnd };
}
