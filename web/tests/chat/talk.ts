// A conversation and the events that a server would say to it.

import { Conversation } from "../../src/chat/conversation";
import type { Effect } from "../../src/chat/outcome";
import type { FormValues, Settings } from "../../src/settings/parse";
import type { ClientEvent, ResponseBody, ServerEvent } from "../../src/wire/events";

export const SETTINGS: Settings = {
  instructions: "",
  temperature: 0.7,
  seed: 7,
  maxTokens: null,
  topP: null,
  topK: null,
  minP: null,
  repetitionPenalty: null,
  speculation: true,
  drafter: "",
  maxNodes: null,
};
/** The form before anybody wrote into it. */
export const VALUES: FormValues = {
  ...{ instructions: "", temperature: "", seed: "", maxTokens: "", topP: "", topK: "", minP: "" },
  ...{ repetitionPenalty: "", speculation: true },
};
export const RENEW: Effect = { do: "renew" };
export const CREATED: ServerEvent = { type: "response.created", response: { id: "r" } };

export function events(effects: Effect[]): ClientEvent[] {
  return effects.flatMap((effect) => (effect.do === "send" ? [effect.event] : []));
}

export function types(effects: Effect[]): string[] {
  return events(effects).map(({ type }) => type);
}

/** What an event says besides its id. */
export function bodies(effects: Effect[]): object[] {
  return events(effects).map(({ event_id: _, ...body }) => body);
}

export function delta(text: string, seq: number, more: Partial<ServerEvent> = {}): ServerEvent {
  const x_spec = { drafted: 0, accepted: 0, emitted: 1 };
  return { type: "response.output_text.delta", response_id: "r", delta: text, x_seq: seq, x_spec, ...more };
}

export function done(status: NonNullable<ResponseBody["status"]>, more: Partial<ResponseBody> = {}): ServerEvent {
  return { type: "response.done", response: { id: "r", status, ...more } };
}

export function fault(message: string, about: string | undefined, code: string | null = null): ServerEvent {
  return { type: "error", error: { message, code, event_id: about ?? null } };
}

export function linked(): Conversation {
  const conversation = new Conversation();
  conversation.receive({ type: "session.created", session: { model: "tiny" } }, 0);
  return conversation;
}

/** One whose first reply has begun with `text`. */
export function replying(text = "Hel"): Conversation {
  const conversation = linked();
  conversation.say("Hi", SETTINGS, 0);
  conversation.receive(CREATED, 1);
  conversation.receive(delta(text, 1), 2);
  return conversation;
}

/** One with a question and a whole reply. */
export function settled(text = "Hello"): Conversation {
  const conversation = replying(text);
  conversation.receive(done("completed"), 3);
  return conversation;
}

export function turns(conversation: Conversation): [string, string, string][] {
  return conversation.turns.map(({ role, text, state }) => [role, text, state]);
}

/** Role and text of the items that are sent. */
export function items(effects: Effect[]): [string, string][] {
  return events(effects).flatMap(({ type, item }) => {
    const { role, content } = (item ?? {}) as { role: string; content: { text: string }[] };
    return type === "conversation.item.create" ? [[role, content[0]?.text ?? ""] as [string, string]] : [];
  });
}
