// The connection: one realtime socket at a time, opened again with backoff when it drops, and a sentence for each
// reason it may be away. It knows nothing of conversations: whole events go out by `send` and come in by `onEvent`.

import { backoff } from "./backoff";
import { type Clock, PAGE_CLOCK } from "./clock";
import {
  closeReason,
  NEEDS_KEY,
  NO_SOCKET,
  noAnswerReason,
  ODD_KEY,
  refusalReason,
  SILENT,
  TAKEN_UP,
  tryingAgain,
  UNREADABLE,
  WRONG_KEY,
} from "./closing";
import type { ClientEvent, ServerEvent } from "./events";
import { readEvent } from "./reading";

const PATIENCE_MS = 10_000; // for the first word of a socket, or the answer to a question: a server gives both at once
const QUIET_MS = 10_000; // while a reply is on its way; a long prompt may take as long, so the server is only asked then
const ANSWER_MS = 5_000; // for the answer to that, which waits for no step of the model
const SETTLED_MS = 5_000; // a socket that lived this long was healthy: the next wait starts small again
/** Changes nothing, and is answered at once, whatever else goes on. */
const ANYBODY: ClientEvent = { type: "session.update", session: { type: "realtime" } };
const KEY_PREFIX = "openai-insecure-api-key."; // how a browser, which cannot set headers, hands over a bearer key
const TOKEN = /^[\w!#$%&'*+.^`|~-]*$/; // what a subprotocol may be made of (RFC 9110, 5.6.2)
const OPEN = 1; // WebSocket.OPEN, also where there is no WebSocket
const SECRET_S = 60; // it only opens a socket

export function subprotocols(key: string): string[] {
  return key ? ["realtime", KEY_PREFIX + key] : [];
}

export type LinkState = "connecting" | "open" | "waiting" | "locked";

export interface LinkOptions {
  /** ws: or wss: */
  url: string;
  /** An http address that answers 401 when a key is needed. */
  probe: string;
  /** An http address that makes a short-lived key of one that no subprotocol can be. */
  secrets: string;
  key?: string;
  onEvent(event: ServerEvent): void;
  /** The socket is gone. code: it was closed with that; undefined where it never opened, or was left. */
  onDown(code?: number): void;
  /** sentence: why it is not open, "" where there is nothing to explain. */
  onState(state: LinkState, sentence: string): void;
}

/** What an ordinary request with the key brought. */
interface Answer {
  /** 0: nothing came. */
  status: number;
  /** Why that is no good, as a clause. */
  reason: string;
  /** The short-lived key; null where it holds none. */
  secret: string | null;
}

/** The browser's own things, which tests replace. */
export interface Outside {
  WebSocket: typeof WebSocket;
  fetch: typeof fetch;
  clock: Clock;
  random(): number;
}

const BROWSER: Outside = {
  WebSocket: globalThis.WebSocket,
  fetch: (...args) => fetch(...args),
  clock: PAGE_CLOCK,
  random: Math.random,
};

export class Link {
  #socket: WebSocket | null = null;
  #endWait: (() => void) | null = null; // for the next try
  #endPatience: (() => void) | null = null; // with the try that is under way, and with a socket that falls silent
  #heard = false; // the socket has said something
  #expecting = false;
  #attempt = 0;
  #era = 0; // counts up with every close: what was under way before it is not wanted after
  #openedAt: number | null = null;
  #key: string;
  readonly #options: LinkOptions;
  readonly #outside: Outside;

  constructor(options: LinkOptions, outside: Partial<Outside> = {}) {
    this.#options = options;
    this.#key = options.key ?? "";
    this.#outside = { ...BROWSER, ...outside };
  }

  get key(): string {
    return this.#key;
  }

  set key(key: string) {
    this.#key = key;
    this.renew();
  }

  /** A new socket, and so a new session, at once; whatever the old one still says is not heard. */
  renew(): void {
    this.#attempt = 0;
    this.close();
    this.#connect();
  }

  /** Ends a wait early: the person wants something. */
  hurry(): void {
    if (this.#endWait !== null) this.renew();
  }

  /** Whether a reply is on its way. A lost network closes no socket, so one that falls silent then is asked for an answer. */
  expect(on: boolean): void {
    this.#expecting = on;
    if (on && this.#heard && this.#endPatience === null) this.#listen();
  }

  /** The network or the whole machine may have been away: ends a wait, and asks an open socket for an answer. */
  check(): void {
    if (this.#endWait !== null) this.renew();
    else if (this.#heard) this.#ask();
  }

  /** Dropped where no socket is open: whoever needs an event to arrive sends it again after `session.created`. */
  send(event: ClientEvent): void {
    const socket = this.#socket;
    if (socket?.readyState === OPEN) socket.send(JSON.stringify(event));
  }

  /** For good, or until `renew`. */
  close(): void {
    this.#era += 1;
    this.#endWait?.();
    this.#endWait = null;
    this.#leave();
  }

  #listen(): void {
    this.#endPatience?.();
    this.#endPatience = this.#expecting ? this.#outside.clock.after(QUIET_MS, () => this.#ask()) : null;
  }

  #ask(): void {
    this.#wantWord(ANSWER_MS);
    this.send(ANYBODY);
  }

  #wantWord(within: number): void {
    this.#endPatience?.();
    this.#endPatience = this.#outside.clock.after(within, () => this.#lose(() => this.#wait(SILENT)));
  }

  #leave(): void {
    this.#endPatience?.();
    this.#endPatience = null;
    this.#heard = false;
    const old = this.#socket;
    this.#socket = null; // first, so that its last words are ignored
    old?.close(1000);
  }

  #connect(): void {
    this.#options.onState("connecting", "");
    this.#openedAt = null;
    if (TOKEN.test(this.#key)) this.#open(this.#key);
    else void this.#openBySecret();
  }

  // A key as `openssl rand -base64` makes it can be a header, but no subprotocol.
  async #openBySecret(): Promise<void> {
    const era = this.#era;
    const wish = { expires_after: { anchor: "created_at", seconds: SECRET_S } };
    const { status, reason, secret } = await this.#inquire(this.#options.secrets, wish);
    if (era !== this.#era) return; // renewed or closed while we asked
    if (secret !== null) this.#open(secret);
    else if (status === 401) this.#options.onState("locked", WRONG_KEY);
    else if (status === 404 || !isHeader(this.#key)) this.#options.onState("locked", ODD_KEY);
    else this.#wait(reason);
  }

  #open(key: string): void {
    let socket: WebSocket;
    try {
      socket = new this.#outside.WebSocket(this.#options.url, subprotocols(key));
    } catch {
      this.#wait(NO_SOCKET); // the constructor is missing, or throws
      return;
    }
    this.#socket = socket;
    this.#wantWord(PATIENCE_MS);
    socket.onopen = () => {
      if (socket !== this.#socket) return;
      this.#openedAt = this.#outside.clock.now();
      this.#options.onState("open", "");
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      this.#heard = true;
      this.#listen();
      this.#options.onEvent(readEvent(data) ?? UNREADABLE);
    };
    socket.onclose = ({ code }) => {
      if (socket === this.#socket) this.#closed(code);
    };
  }

  #closed(code: number): void {
    const openedAt = this.#openedAt;
    this.#lose(() => {
      if (openedAt === null) {
        void this.#explainRefusal();
        return;
      }
      if (this.#outside.clock.now() - openedAt >= SETTLED_MS) this.#attempt = 0;
      if (code === TAKEN_UP)
        this.#connect(); // the server is well
      else this.#wait(closeReason(code));
    }, code);
  }

  /** next: unless the listener, who is told first, renewed or closed. */
  #lose(next: () => void, code?: number): void {
    this.#leave();
    const era = this.#era;
    this.#options.onDown(code);
    if (era === this.#era) next();
  }

  // A browser does not tell a page why a socket was refused, so an ordinary request asks the same question.
  async #explainRefusal(): Promise<void> {
    const era = this.#era;
    const { status, reason } = await this.#inquire(this.#options.probe);
    if (era !== this.#era) return; // renewed or closed while we asked
    if (status === 401) this.#options.onState("locked", this.#key ? WRONG_KEY : NEEDS_KEY);
    else this.#wait(reason);
  }

  async #inquire(url: string, body: object | null = null): Promise<Answer> {
    const asking = new AbortController();
    const endPatience = this.#outside.clock.after(PATIENCE_MS, () => asking.abort());
    const headers: Record<string, string> = this.#key ? { authorization: `Bearer ${this.#key}` } : {};
    const init: RequestInit = { headers, cache: "no-store", signal: asking.signal };
    if (body !== null) {
      headers["content-type"] = "application/json";
      Object.assign(init, { method: "POST", body: JSON.stringify(body) });
    }
    try {
      const answer = await this.#outside.fetch(url, init);
      const secret = body !== null && answer.ok ? await secretOf(answer) : null;
      return { status: answer.status, reason: await refusalReason(answer), secret };
    } catch {
      return { status: 0, reason: noAnswerReason(asking.signal), secret: null };
    } finally {
      endPatience();
    }
  }

  #wait(reason: string): void {
    const ms = backoff(this.#attempt, this.#outside.random);
    this.#attempt += 1;
    this.#endWait = this.#outside.clock.after(ms, () => {
      this.#endWait = null;
      this.#connect();
    });
    this.#options.onState("waiting", tryingAgain(reason, ms)); // last, so that the listener may close
  }
}

async function secretOf(answer: Response): Promise<string | null> {
  const { value } = await answer.json();
  return typeof value === "string" && TOKEN.test(value) ? value : null;
}

function isHeader(key: string): boolean {
  try {
    new Headers({ authorization: `Bearer ${key}` });
    return true;
  } catch {
    return false;
  }
}
