// The chat: the conversation, with what belongs to it at its sides.

import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { themeSignal } from "../settings/theme";
import { Boundary } from "../shell/boundary";
import { copy, download } from "../shell/browser";
import { Lazy } from "../shell/lazy";
import type { ViewProps } from "../shell/view";
import type { SpeculationProps } from "../spec/view";
import { Notices, Trouble } from "./bars";
import { Composer } from "./composer";
import { jsonFile, markdownFile } from "./export";
import { FigureStrip } from "./figures";
import { Help } from "./help";
import { type FileKind, List } from "./list";
import { Log } from "./log";
import { Panel } from "./panel";
import { Room } from "./room";
import { type Action, shortcut } from "./shortcuts";
import { focusLost, useSteps } from "./sides";
import { Spoken } from "./spoken";
import type { TurnActions } from "./turn";
import { keep } from "./turns";
import "./chat.css";
import "./sides.css";
import "./turns.css";

type Side = "settings" | "list";

export function Chat({ server, settings, shown }: ViewProps) {
  const room = useMemo(() => new Room(server, settings), [server, settings]);
  const theme = useMemo(() => themeSignal(document.documentElement), []);
  const side = useSignal<Side | null>(null);
  const steps = useSteps();
  const newest = useRef(steps); // for what is pressed later
  newest.current = steps;
  const help = useSignal(false);
  const keyWanted = useSignal(false);
  const message = useRef<HTMLTextAreaElement>(null);
  // The same ones with each drawing: who is given another one draws all of itself anew.
  const compose = useCallback(() => message.current?.focus(), []);

  const fresh = () => {
    room.fresh();
    compose();
  };
  const ask = useCallback(
    (text: string) => {
      room.ask(text);
      compose(); // the button that was pressed goes
    },
    [room],
  );
  const toggle = (name: Side) => {
    side.value = side.value === name ? null : name;
  };
  const editLast = () => {
    const last = room.conversation.turns.findLast(({ role }) => role === "user");
    if (last) room.editing.value = last.key;
  };
  const actions: TurnActions = useMemo(
    () => ({
      copy: async (turn) => {
        const done = await copy(turn.text);
        if (done) room.aloud("Copied.");
        else room.tell("The browser did not allow copying; select the text and copy it by hand.");
        return done;
      },
      edit: (turn) => {
        room.editing.value = turn?.key ?? null;
        if (!turn) compose();
      },
      resend: (turn, text) => {
        room.edit(turn, text);
        if (room.editing.value === null) compose();
      },
      retry: () => room.retry(),
      goOn: () => room.goOn(),
      look: (turn) => {
        room.looked.value = room.looked.value === turn.key ? null : turn.key;
        if (room.looked.value !== null) newest.current.show();
      },
    }),
    [room],
  );
  const exportAs = async (kind: FileKind, id?: string) => {
    const { shelf } = room.records;
    const open = id === undefined || id === shelf.id;
    const kept = open ? { title: shelf.title, turns: room.conversation.turns.map(keep) } : await shelf.find(id);
    if (kept === null) return; // which was told
    const { title, turns } = kept;
    const instructions = settings.value.instructions.trim();
    download(
      kind === "json" ? jsonFile(title, turns, instructions, room.conversation.model) : markdownFile(title, turns),
    );
  };

  useLayoutEffect(() => room.frames.rest(!shown), [room, shown]); // the model may need the processor
  const panel = side.value;
  useEffect(() => {
    if (panel === null && shown) compose();
  }, [panel]);
  useEffect(() => {
    if (shown) compose(); // the link that led here had the focus
  }, [shown]);
  useEffect(() => {
    if (shown && focusLost()) compose(); // what had it went with the steps, or has no room any more
  }, [panel, steps.open, steps.room]);
  useEffect(() => {
    void room.start();
    const deeds: Record<Action, () => void> = {
      new: fresh,
      list: () => toggle("list"),
      settings: () => toggle("settings"),
      steps: () => newest.current.toggle(),
      compose,
      help: () => {
        help.value = true;
      },
    };
    const pressed = (event: KeyboardEvent) => {
      if (help.value || message.current?.closest("[hidden]")) return; // the help or another view has the keys
      if (event.key === "Escape" && !event.isComposing && room.conversation.busy) room.stop();
      const action = shortcut(event);
      if (!action) return;
      event.preventDefault();
      deeds[action]();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [room]);
  useEffect(
    () =>
      room.problem.subscribe((problem) => {
        if (problem) side.value = "settings";
      }),
    [room],
  );

  return (
    <main class="chat" data-side={side.value} data-steps={steps.open ? "" : undefined}>
      <div class="chat-head">
        <Chip room={room} />
        <SideButton id="list-toggle" name="list" side={side.value} panel="conversations" press={toggle}>
          Conversations
        </SideButton>
        <button type="button" id="new" aria-label="New conversation" onClick={fresh}>
          New<span class="chat-wordy"> conversation</span>
        </button>
        <SideButton id="settings-toggle" name="settings" side={side.value} panel="settings" press={toggle}>
          Settings
        </SideButton>
        <button
          type="button"
          id="steps-toggle"
          aria-expanded={steps.open}
          aria-controls={steps.open ? "steps" : undefined}
          onClick={steps.toggle}
        >
          Steps
        </button>
        <button type="button" id="help-open" aria-label="Keys" onClick={() => (help.value = true)}>
          ?
        </button>
      </div>
      {side.value === "list" && <List room={room} chosen={() => (side.value = null)} exportAs={exportAs} />}
      <Log room={room} actions={actions} ask={ask} />
      <div class="chat-foot">
        <Trouble
          room={room}
          askForKey={() => {
            side.value = "settings";
            keyWanted.value = true;
          }}
        />
        <Notices room={room} dismissed={compose} />
        <FigureStrip room={room} settings={settings} refocus={compose} />
        <Composer room={room} field={message} editLast={editLast} />
      </div>
      {side.value === "settings" && (
        <Panel
          room={room}
          server={server}
          settings={settings}
          theme={theme}
          apiKey={server.key.value}
          wanted={keyWanted}
          done={() => toggle("settings")}
        />
      )}
      {steps.open && <Steps room={room} />}
      <Help open={help.value} close={() => (help.value = false)} />
      <Spoken saying={room.saying} />
    </main>
  );
}

const loadSteps = () => import("../spec/view").then(({ SpeculationView }) => ({ default: SpeculationView }));

/** How the reply that is looked at, or else the newest, was made. */
function Steps({ room }: { room: Room }) {
  room.shape.value;
  const trace = room.shown?.trace ?? null;
  const props: SpeculationProps = { trace, forgotten: room.shown !== null && trace === null, tick: room.frames.tick };
  return (
    <div id="steps">
      <Boundary about={room.shown?.key}>
        <Lazy load={loadSteps} props={props} />
      </Boundary>
    </div>
  );
}

function Chip({ room }: { room: Room }) {
  room.shape.value;
  return (
    <p id="chip" data-state={room.news.state}>
      {room.news.chip(room.conversation.model)}
    </p>
  );
}

interface SideButtonProps {
  id: string;
  name: Side;
  side: Side | null;
  /** The id of what it shows. */
  panel: string;
  press(name: Side): void;
  children: string;
}

function SideButton({ id, name, side, panel, press, children }: SideButtonProps) {
  const open = side === name;
  return (
    <button
      type="button"
      id={id}
      aria-expanded={open}
      aria-controls={open ? panel : undefined}
      onClick={() => press(name)}
    >
      {children}
    </button>
  );
}
