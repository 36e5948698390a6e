// One turn: whose it is, its text, how it came about, and what can be done with it.

import type { Signal } from "@preact/signals";
import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ReplyText } from "./reply";
import { Thoughts } from "./thoughts";
import type { Turn } from "./turns";

const COPIED_MS = 2_000;

/** What the person does with turns. */
export interface TurnActions {
  /** Resolves to whether it could be copied. */
  copy(turn: Turn): Promise<boolean>;
  /** null: leaves the edit. */
  edit(turn: Turn | null): void;
  resend(turn: Turn, text: string): void;
  retry(): void;
  goOn(): void;
  look(turn: Turn): void;
}

export interface TurnProps {
  turn: Turn;
  state: Turn["state"];
  note: string;
  /** It is the newest. */
  last: boolean;
  /** A reply is on its way, so nothing can be asked. */
  busy: boolean;
  editing: boolean;
  /** Its steps are being looked at. */
  looked: boolean;
  /** Its steps are still known. */
  traced: boolean;
  tick: Signal<number>;
  actions: TurnActions;
}

/** Drawn again only where something but its text changed. */
export class TurnView extends Component<TurnProps> {
  override shouldComponentUpdate(next: TurnProps): boolean {
    return (Object.keys(next) as (keyof TurnProps)[]).some((name) => next[name] !== this.props[name]);
  }

  override render({ turn, state, note, editing, tick, actions, ...rest }: TurnProps) {
    const mine = turn.role === "user";
    return (
      <article class={`turn ${turn.role}`} data-state={state} id={`turn-${turn.key}`}>
        <h2>{mine ? "You" : turn.unread ? "Unknown" : "Model"}</h2>
        {editing ? <Edit turn={turn} actions={actions} /> : mine && <UserText text={turn.text} />}
        {!mine && <Thoughts turn={turn} tick={tick} />}
        {!mine && <ReplyText turn={turn} tick={tick} />}
        {note && <p class="note">{note}</p>}
        {!editing && state !== "running" && turn.unread === null && <Deeds {...rest} turn={turn} actions={actions} />}
      </article>
    );
  }
}

function UserText({ text }: { text: string }) {
  return (
    <div class="text" dir="auto">
      {text}
    </div>
  );
}

type DeedsProps = Pick<TurnProps, "turn" | "last" | "busy" | "looked" | "traced" | "actions">;

function Deeds({ turn, last, busy, looked, traced, actions }: DeedsProps) {
  const again = last && !busy && turn.role === "assistant";
  return (
    <div class="chat-deeds">
      <CopyButton copy={() => actions.copy(turn)} />
      {turn.role === "user" && (
        <button type="button" data-action="edit" disabled={busy} onClick={() => actions.edit(turn)}>
          Edit
        </button>
      )}
      {again && (
        <button type="button" data-action="again" onClick={actions.retry}>
          {turn.state === "failed" || turn.state === "interrupted" ? "Try again" : "Another reply"}
        </button>
      )}
      {again && unfinished(turn) && (
        <button type="button" data-action="go-on" onClick={actions.goOn}>
          Go on
        </button>
      )}
      {traced && (
        <button type="button" data-action="look" aria-pressed={looked} onClick={() => actions.look(turn)}>
          Look at the steps
        </button>
      )}
    </div>
  );
}

/** Whether there is a rest to ask for. */
function unfinished({ state, text }: Turn): boolean {
  return state === "cut" || (text !== "" && (state === "stopped" || state === "interrupted"));
}

function CopyButton({ copy }: { copy(): Promise<boolean> }) {
  const [done, set] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => set(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <button type="button" data-action="copy" onClick={() => void copy().then(set)}>
      {done ? "Copied" : "Copy"}
    </button>
  );
}

function Edit({ turn, actions }: { turn: Turn; actions: TurnActions }) {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(turn.text.length, turn.text.length);
  }, [turn]);
  const send = () => actions.resend(turn, field.current?.value ?? "");
  const id = `edit-${turn.key}`;
  return (
    <form
      class="chat-edit"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label for={id}>Your words, to be sent again in place of this turn</label>
      <textarea
        id={id}
        ref={field}
        dir="auto"
        defaultValue={turn.text}
        onKeyDown={(event) => {
          if (event.isComposing) return;
          if (event.key === "Escape") {
            event.stopPropagation();
            actions.edit(null);
          } else if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            send();
          }
        }}
      />
      <button type="submit">Send again</button>
      <button type="button" onClick={() => actions.edit(null)}>
        Leave as it was
      </button>
    </form>
  );
}
