// The turns in parts: those of a long conversation are mounted from its end upwards, some in each frame. What stands
// there already costs such a frame next to nothing: a part out of sight is one box, and is not compared again.

import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Room } from "./room";
import { type TurnActions, TurnView } from "./turn";

const TURNS = 12; // of a part; so many are mounted in a frame

export interface PartsProps {
  room: Room;
  actions: TurnActions;
}

export function Parts({ room, actions }: PartsProps) {
  const { turns, busy } = room.conversation;
  const changes = [room.shape.value, room.editing.value, room.looked.value, actions, turns];
  const made = useMemo(() => new Map<number, VNode>(), changes);
  const count = Math.ceil(turns.length / TURNS);
  const first = useFilling(turns[0]?.key, count);
  const part = (at: number) => (
    <div key={at} class="chat-part">
      {turns.slice(at * TURNS, (at + 1) * TURNS).map((turn) => (
        <TurnView
          key={turn.key}
          turn={turn}
          state={turn.state}
          note={turn.note}
          last={turn === turns.at(-1)}
          busy={busy}
          editing={room.editing.value === turn.key}
          looked={room.looked.value === turn.key}
          traced={turn.trace !== null && turn.trace.steps.length > 0}
          tick={room.frames.tick}
          actions={actions}
        />
      ))}
    </div>
  );
  const parts: VNode[] = [];
  for (let at = first; at < count; at += 1) {
    const there = made.get(at) ?? part(at);
    made.set(at, there);
    parts.push(there);
  }
  return <>{parts}</>;
}

/** The index of the first part that is mounted; it goes down to 0 frame by frame. which: another conversation's, another value. */
function useFilling(which: number | undefined, count: number): number {
  const begin = Math.max(0, count - 2); // the last one may be all but empty
  const [filled, fill] = useState({ which, first: begin });
  const first = filled.which === which ? filled.first : begin;
  useEffect(() => {
    if (first === 0) return;
    const frame = requestAnimationFrame(() => fill({ which, first: first - 1 }));
    return () => cancelAnimationFrame(frame);
  }, [which, first]);
  return Math.min(first, begin);
}
