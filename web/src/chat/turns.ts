// The turns of a conversation, as they are shown and as they are kept.

import type { Settings } from "../settings/parse";
import { decimal, milliseconds, plural, whole } from "../shell/format";
import type { Figures } from "../spec/figures";
import { Trace } from "../spec/trace";
import type { Role } from "../wire/requests";

/** running: more may come. cut: at the length limit. failed and interrupted: the rest is missing. */
export type TurnState = "running" | "done" | "stopped" | "cut" | "failed" | "interrupted";

const STATES: readonly TurnState[] = ["running", "done", "stopped", "cut", "failed", "interrupted"];

/** What becomes of a running reply that was kept: it is taken up here, comes to another tab, or is broken off. */
export type Running = "here" | "elsewhere" | "lost";

/** Where a running reply can be taken up again. */
export interface Place {
  id: string;
  /** x_seq of the last delta that is in the text; 0: none. */
  seq: number;
}

export interface Turn {
  /** Unique on this page. */
  readonly key: number;
  readonly role: Role;
  text: string;
  /** What the model thought on its way to the text; "" where it told nothing. */
  thoughts: string;
  state: TurnState;
  /** How it ended and came about; "" where there is nothing to say. */
  note: string;
  /** null: a turn of the person's, one that was made before the page was loaded, or an older one (`forgetSteps`). */
  trace: Trace | null;
  /** What the reply was asked for with; null: a turn of the person's, or one made before the page was loaded. */
  settings: Settings | null;
  /** null: not announced yet, or over. */
  place: Place | null;
  /** What a newer page stored with it. */
  more: object;
  /** The stored turn that this page cannot read and this one stands for; null for one of the page's own. */
  unread: object | null;
}

/** A turn as it is stored. */
export interface KeptTurn {
  role: Role;
  text: string;
  state: TurnState;
  note: string;
  place?: Place;
  /** The end of them. */
  thoughts?: string;
  /** Not stored: stored instead of this turn. */
  unread?: object;
}

/** Of a reply whose rest is missing. */
export const LOST = "connection lost";

const TRACES = 8; // newest replies whose steps stay; those of 500 tokens take about 0.25 MB
const LONGEST_THOUGHTS = 50_000; // characters that are kept; what stands nearest to the answer says most about it

const UNREAD: KeptTurn = {
  role: "assistant",
  text: "",
  state: "done",
  note: "A newer version of this page made this turn, and this one cannot show it; it is kept. Reload for the newest.",
};

let made = 0;

export function newTurn(role: Role, text: string, more: Partial<Turn> = {}): Turn {
  made += 1;
  return {
    key: made,
    role,
    text,
    thoughts: "",
    state: "done",
    note: "",
    trace: null,
    settings: null,
    place: null,
    more: {},
    unread: null,
    ...more,
  };
}

/** A reply that is asked for with `settings`, at `now` in milliseconds. */
export function newReply(settings: Settings, now: number): Turn {
  return newTurn("assistant", "", { state: "running", trace: new Trace(now), settings });
}

/** Whether the last of the turns is not over. */
export function runs(turns: readonly Pick<Turn, "state">[]): boolean {
  return turns.at(-1)?.state === "running";
}

/** Whether anything of the reply has come. */
export function begun({ text, thoughts }: Turn): boolean {
  return text !== "" || thoughts !== "";
}

export function keep({ role, text, thoughts, state, note, place, more, unread }: Turn): KeptTurn {
  const kept: KeptTurn = { ...more, role, text, state, note };
  if (unread !== null) kept.unread = unread;
  if (place !== null) kept.place = { ...place };
  if (thoughts !== "") kept.thoughts = newest(thoughts);
  return kept;
}

function newest(thoughts: string): string {
  if (thoughts.length <= LONGEST_THOUGHTS) return thoughts;
  return `…${thoughts.slice(1 - LONGEST_THOUGHTS).replace(/^[\udc00-\udfff]/, "")}`;
}

/** Stored turns back as turns. Only a reply at the end can still run. */
export function unkeep(kept: readonly KeptTurn[]): Turn[] {
  return kept.map((turn, i) => {
    const { role, text, thoughts = "", state, note, place = null, unread = null, ...more } = turn;
    const read = newTurn(role, text, { thoughts, state, note, place, more, unread });
    if (state === "running" && (role === "user" || i < kept.length - 1)) {
      Object.assign(read, { state: "interrupted", note: note || LOST, place: null });
    }
    return read;
  });
}

/** What was stored as the turns of a conversation; what this page cannot read is not lost. */
export function turnsFrom(stored: readonly unknown[]): KeptTurn[] {
  const objects = stored.filter((turn) => typeof turn === "object" && turn !== null);
  return objects.map((turn) => (isKeptTurn(turn) ? turn : { ...UNREAD, unread: turn }));
}

/** The turns as they are to be stored. */
export function toStore(turns: readonly KeptTurn[]): object[] {
  return turns.map((turn) => turn.unread ?? turn);
}

/** Whether what was stored is a turn. */
function isKeptTurn(stored: unknown): stored is KeptTurn {
  const { role, text, thoughts, state, note, place } = (stored ?? {}) as Partial<KeptTurn>;
  const speaks = role === "user" || role === "assistant";
  const placed = place === undefined || (typeof place?.id === "string" && typeof place.seq === "number");
  const worded = typeof text === "string" && typeof note === "string" && typeof (thoughts ?? "") === "string";
  return speaks && placed && worded && STATES.includes(state as TurnState);
}

/** Lets go of the steps of all but the newest replies; looked: the key of one whose steps stay in any case. */
export function forgetSteps(turns: readonly Turn[], looked: number | null): void {
  const traced = turns.filter(({ trace }) => trace !== null);
  for (const turn of traced.slice(0, -TRACES)) if (turn.key !== looked) turn.trace = null;
}

/** What that brought; nothing of a reply whose beginning was not seen. */
function saving({ ttft, steps: { taken, plain } }: Figures): string {
  return ttft === null || taken >= plain ? "" : `: ${plural(taken, "step")} instead of ${whole(plain)}`;
}

/** One line that says how a reply came about, enough to make it again. */
export function summary({ trace, settings }: Turn): string {
  if (trace === null || settings === null) return "";
  const { figures } = trace;
  const parts = [`speculation ${settings.speculation ? "on" : "off"}`];
  if (figures.ttft !== null) parts.push(`TTFT ${milliseconds(figures.ttft)}`);
  if (figures.cached && figures.prompt)
    parts.push(`${whole(figures.cached)} of ${whole(figures.prompt)} prompt tokens were ready`);
  if (figures.tpot !== null) parts.push(`TPOT ${milliseconds(figures.tpot)}`);
  if (figures.perStep !== null) parts.push(`${decimal(figures.perStep)} tokens per step${saving(figures)}`);
  if (figures.tokens > 0) parts.push(plural(figures.tokens, "token"));
  if (settings.temperature !== 0) parts.push(`seed ${settings.seed}`);
  return parts.join(" · ");
}
