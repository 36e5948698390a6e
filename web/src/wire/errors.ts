// What a person at this page can do about a server's error, where the server's own sentence does not say it or speaks to
// programmers.

import type { Fault } from "./events";

const AGAIN = "Try again.";
const LATER = "Wait a moment, then try again.";
const OPERATOR = "Try again; if it stays, ask whoever runs the server to look into its log.";
const RELOAD = "Reload the page; the conversation is kept.";
const SHORTER = "Start a new conversation, or edit an early turn to a shorter one.";

const ADVICE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    context_length_exceeded: SHORTER,
    conversation_full: SHORTER,
    empty_conversation: "Write a message first.",
    engine_error: OPERATOR,
    internal_error: OPERATOR,
    invalid_api_key: "Enter another key in the settings.",
    invalid_json: RELOAD,
    item_exists: RELOAD,
    item_not_found: RELOAD,
    not_found: "See that the page comes from a Paceline server.",
    overloaded: LATER,
    rate_limit_exceeded: LATER,
    response_cancel_not_active: "The reply had ended already; write on.",
    response_not_found: AGAIN,
    resume_gone: AGAIN,
    server_error: OPERATOR,
    shutting_down: LATER,
    unknown_event: "See that the page and the server are of the same version, then reload.",
    unknown_speculator: "Choose another drafter, then try again.",
    unsupported: "See that the page and the server are of the same version, then reload.",
  }),
);

const LONGEST = 500; // characters; whoever has more to say than that speaks to nobody

/** A server's own words, cut where there is no end to them. */
export function ownWords(words: unknown): string {
  const all = typeof words === "string" ? words.trim() : "";
  if (all.length <= LONGEST) return all;
  return `${all.slice(0, LONGEST - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** A server's error as a sentence that says what to do. silent: where the server says nothing at all. */
export function advice({ message, code }: Fault, silent: string): string {
  const own = ownWords(message);
  const more = code ? ADVICE.get(code) : undefined;
  return own ? [own, more].filter(Boolean).join(" ") : (more ?? silent);
}
