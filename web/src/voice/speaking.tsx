// The ways to speak: with the microphone, by a recorded transcript, or by one's own words.

import { useState } from "preact/hooks";
import { Switch } from "../shell/switch";
import { change, PACE } from "./options";
import type { Room } from "./room";
import { ownWords, SCRIPTS } from "./transcripts";

const NO_RECOGNITION =
  "This browser has no speech recognition (Chrome, Edge and Safari do); play a transcript or type instead.";
const OPEN_NETWORK =
  "Browsers give the microphone only to pages that come over https or from this machine; open the page so, or type instead.";

export function ByMicrophone({ room }: { room: Room }) {
  const { microphone } = room;
  return (
    <section aria-labelledby="voice-microphone">
      <h2 id="voice-microphone">Speak</h2>
      {microphone === null ? (
        <p>{isSecureContext ? NO_RECOGNITION : OPEN_NETWORK}</p>
      ) : (
        <Talking room={room} held={microphone.listening === "held"} free={microphone.listening === "free"} />
      )}
    </section>
  );
}

function Talking({ room, held, free }: { room: Room; held: boolean; free: boolean }) {
  const press = (event: Event) => {
    event.preventDefault();
    room.press();
  };
  const release = () => room.microphone?.release();
  const isTalkKey = ({ key, repeat }: KeyboardEvent) => (key === " " || key === "Enter") && !repeat;
  return (
    <>
      <p class="voice-note">
        Recognition is the browser's own: it may send what it hears to the browser's maker. Nothing is heard before you
        press.
      </p>
      <div class="voice-row">
        <button
          type="button"
          class="voice-hold"
          aria-pressed={held}
          disabled={free}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            room.press();
          }}
          onPointerUp={release}
          onPointerCancel={release}
          onContextMenu={(event) => event.preventDefault()}
          onKeyDown={(event) => isTalkKey(event) && press(event)}
          onKeyUp={(event) => isTalkKey(event) && release()}
          onBlur={release}
        >
          {held ? "Listening; release to end the turn" : "Hold to talk"}
        </button>
        <Switch on={free} change={(on) => room.handsFree(on)}>
          Hands-free
        </Switch>
      </div>
      <p class="voice-note">Hands-free, a silence ends your turn. Use headphones, or the page hears its own voice.</p>
    </>
  );
}

export function ByTranscript({ room }: { room: Room }) {
  const { script } = room.replay;
  return (
    <section aria-labelledby="voice-transcripts">
      <h2 id="voice-transcripts">Play a transcript</h2>
      <p class="voice-note">Words come as recognisers tell them. No microphone is used.</p>
      <ul class="voice-scripts">
        {SCRIPTS.map((one, i) => (
          <li key={one.name}>
            <button
              type="button"
              aria-pressed={script === one}
              aria-describedby={`voice-script-${i}`}
              onClick={() => room.play(one)}
            >
              {one.name}
            </button>
            <p class="voice-note" id={`voice-script-${i}`}>
              {one.about}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function ByTyping({ room }: { room: Room }) {
  const [text, setText] = useState("");
  const { pace } = room.options.value;
  const say = (event: Event) => {
    event.preventDefault();
    if (text.trim() === "") return;
    room.play(ownWords(text, pace));
    setText("");
  };
  return (
    <section aria-labelledby="voice-typing">
      <h2 id="voice-typing">Own words</h2>
      <form onSubmit={say}>
        <label for="voice-own">What you would say</label>
        <textarea id="voice-own" rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <div class="voice-row">
          <button type="submit">Say it</button>
          <label for="voice-pace">Words per minute</label>
          <input
            id="voice-pace"
            type="number"
            min={PACE.low}
            max={PACE.high}
            step={10}
            value={pace}
            onChange={(event) => change(room.options, { pace: event.currentTarget.valueAsNumber })}
          />
        </div>
      </form>
    </section>
  );
}
