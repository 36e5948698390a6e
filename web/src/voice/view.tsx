// The voice demo: speech recognition before the realtime socket, a voice behind it, and what both make of the server.

import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import type { ViewProps } from "../shell/view";
import { Choices } from "./choices";
import type { VoiceLoop } from "./loop";
import { Room } from "./room";
import { ByMicrophone, ByTranscript, ByTyping } from "./speaking";
import { Stage } from "./stage";
import { Talk, Times } from "./turns";
import "./voice.css";

export default function View({ server, settings, shown }: ViewProps) {
  const room = useMemo(() => new Room(server, settings, window), [server, settings]);
  useEffect(() => room.open(), [room]);
  useLayoutEffect(() => room.show(shown), [room, shown]);
  room.frames.tick.value; // whatever changed in the loop is drawn again
  const { loop } = room;
  return (
    <main class="voice">
      <div class="voice-head">
        <p class="voice-intro">
          A voice loop on one connection: words are computed while they are spoken, the reply is spoken clause by
          clause, and breaking in ends it where you stopped listening.
        </p>
        <div class="voice-bars">
          <Away room={room} />
          <div role="alert">
            <Notice loop={loop} />
          </div>
        </div>
      </div>
      <p class="unseen" role="status">
        {room.spoken.value}
      </p>
      <div class="voice-columns">
        {room.microphone && (
          <div class="voice-column voice-first">
            <ByMicrophone room={room} />
          </div>
        )}
        <div class="voice-column voice-now">
          <Stage loop={loop} linked={room.news.state === "open"} />
          <Presses room={room} />
        </div>
        <div class="voice-column voice-ways">
          <ByTranscript room={room} />
          <ByTyping room={room} />
          {!room.microphone && <ByMicrophone room={room} />}
          <Choices room={room} />
        </div>
        <div class="voice-column">
          <Times turn={loop.turns.at(-1) ?? loop.pending.turn} before={loop.turns.slice(0, -1)} />
          <Talk loop={loop} />
        </div>
      </div>
    </main>
  );
}

function Presses({ room }: { room: Room }) {
  const { state, pending } = room.loop;
  const replying = state === "thinking" || state === "speaking";
  const spoken = state === "listening" && !pending.empty;
  return (
    <div class="voice-row">
      <button type="button" disabled={!replying} onClick={() => room.breakIn()}>
        Break in
      </button>
      <button type="button" disabled={!spoken} onClick={() => room.endTurn()}>
        End the turn
      </button>
      <button type="button" disabled={!spoken} onClick={() => room.forget()}>
        Forget the words
      </button>
      <button type="button" onClick={() => room.clear()}>
        New conversation
      </button>
    </div>
  );
}

/** Why there is no session, and what to do about it; with the seconds until each try, so that it is not for the ear. */
function Away({ room }: { room: Room }) {
  const { state, sentence } = room.news;
  if (sentence === "") return null;
  return (
    <p class="bar voice-bar-row">
      <span>{sentence}</span>
      {state === "waiting" && (
        <button type="button" onClick={() => room.hurry()}>
          Try now
        </button>
      )}
      {state === "locked" && <a href="#/chat">Open the settings</a>}
    </p>
  );
}

function Notice({ loop }: { loop: VoiceLoop }) {
  if (loop.notice === "") return null;
  return (
    <p class="bar voice-bar-row">
      <span>{loop.notice}</span>
      <button type="button" onClick={() => loop.tell("")}>
        Dismiss
      </button>
    </p>
  );
}
