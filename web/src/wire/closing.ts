// Why a socket is not open, in words for a person.

import { ownWords } from "./errors";
import type { ServerEvent } from "./events";

export const NEEDS_KEY = "This server asks for an API key; enter it in the settings.";
export const WRONG_KEY = "The server refused this API key; enter another one in the settings.";
export const ODD_KEY = "This API key holds a character that a browser cannot send; enter another one in the settings.";

/** Where a server took the connection, or not even that, and then said nothing; a clause as `closeReason` gives. */
export const SILENT = "The server does not answer";

/** As above. */
export const NO_SOCKET = "This browser opens no WebSocket (an extension or a policy may forbid it)";

const UNREACHABLE = "The server cannot be reached";

/** In the shape of the server's own error events; the id belongs to no event of ours, so it refuses no turn. */
export const UNREADABLE: ServerEvent = {
  type: "error",
  error: {
    message: "The server sent a message that this page cannot read; is it a Paceline server?",
    event_id: "unreadable",
  },
};

const CLOSED: ReadonlyMap<number, string> = new Map([
  [1001, "The server is going away"],
  [1008, "The server refused this session by its policy"],
  [1009, "A message was too big for the server"],
  [1011, "The server met a fault"],
  [1012, "The server is restarting"],
  [1013, "The server is too busy"],
]);

const REFUSED: ReadonlyMap<number, string> = new Map([
  [426, "The server did not take the request as a WebSocket; check the proxy in front of it"],
  [429, "The server has too many connections"],
  [503, "The server is not ready"],
]);

/** The code of a socket whose session another connection has taken up: whoever lost it does not take it back. */
export const TAKEN_UP = 4409;

/** Why an open socket closed, as a clause that a "trying again" can follow. */
export function closeReason(code: number): string {
  return CLOSED.get(code) ?? "The connection was lost";
}

/** Why a socket was refused, from the answer to an ordinary request that asks the same; a clause as above. */
export async function refusalReason(answer: Response): Promise<string> {
  const known = REFUSED.get(answer.status);
  return known || (answer.ok ? "" : await whyRefused(answer)) || "The server refused the connection";
}

/** Why a request got no answer, as a clause; given: its signal, which is aborted where the page's patience ended. */
export function noAnswerReason(given: AbortSignal): string {
  return given.aborted ? SILENT : UNREACHABLE;
}

/** The sentence for a person: a clause as above, and when it is tried again. */
export function tryingAgain(reason: string, ms: number): string {
  return `${reason}; trying again ${ms < 1500 ? "in a moment" : `in ${Math.round(ms / 1000)} seconds`}.`;
}

/** What a refusal says about itself; an answer that is not the server's own error has nothing to say. */
async function whyRefused(answer: Response): Promise<string> {
  try {
    return ownWords((await answer.json()).error.message).replace(/\.$/, "");
  } catch {
    return "";
  }
}
