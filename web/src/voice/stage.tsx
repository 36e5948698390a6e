// What happens now: the state, the words of the turn, and the reply as it is heard.

import type { VoiceLoop } from "./loop";
import type { Pending } from "./pending";
import type { State } from "./ports";
import type { Reply } from "./reply";

type Told = { name: string; about: string };

const STATES: Record<State, Told> = {
  idle: { name: "Ready", about: "Speak or choose a transcript." },
  listening: { name: "Listening", about: "Words go to the server while they are spoken." },
  thinking: { name: "Thinking", about: "The turn has ended; the reply begins." },
  speaking: { name: "Speaking", about: "Break in at any time." },
  interrupted: { name: "Stopping", about: "You broke in; the reply is ended and cut to what you heard." },
};

/** While there is no session. */
const WITHOUT_SERVER: Partial<Record<State, Told>> = {
  listening: { name: "Listening", about: "The words are kept, and go to the server once it can be reached." },
  thinking: { name: "Waiting", about: "The turn has ended, and waits for the connection to the server." },
};

export interface StageProps {
  loop: VoiceLoop;
  /** There is a session with the server. */
  linked: boolean;
}

export function Stage({ loop, linked }: StageProps) {
  const { state, pending, reply } = loop;
  const { name, about } = (!linked && WITHOUT_SERVER[state]) || STATES[state];
  return (
    <section class="voice-stage" aria-labelledby="voice-state">
      <div class="voice-state" data-state={state}>
        <span class="voice-sign" aria-hidden="true" />
        <div role="status">
          <h2 id="voice-state">{name}</h2>
          <p>{about}</p>
        </div>
      </div>
      <h3>Your words</h3>
      <Words pending={pending} />
      <h3>The reply</h3>
      {reply === null ? <p class="voice-text voice-empty">Nothing yet.</p> : <Heard reply={reply} />}
      <p class="voice-legend">
        <span class="voice-ready">Underlined words</span> are certain, and computed but for the last few.{" "}
        <span class="voice-ahead">Slanted words</span> are not heard yet, and <del>struck ones</del> never were.
      </p>
    </section>
  );
}

function Words({ pending: { text, ready } }: { pending: Pending }) {
  if (text === "") return <p class="voice-text voice-empty">Nothing is being said.</p>;
  return (
    <p class="voice-text" id="voice-words" dir="auto">
      <span class="voice-ready">{text.slice(0, ready)}</span>
      {text.slice(ready)}
    </p>
  );
}

function Heard({ reply }: { reply: Reply }) {
  const { text, heardText, turn } = reply;
  const ahead = text.slice(heardText.length);
  return (
    <p class="voice-text" id="voice-reply" dir="auto">
      <span class="voice-heard">{heardText}</span>
      {turn.brokeIn === null ? <span class="voice-ahead">{ahead}</span> : <del>{ahead}</del>}
    </p>
  );
}
