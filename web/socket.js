// The connection: one realtime socket at a time, opened again with backoff when it drops, and a sentence for each
// reason it may be away. It knows nothing of conversations: whole events go out by `send` and come in by `onEvent`.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const SETTLED_MS = 5_000; // a socket that lived this long was healthy: the next wait starts small again
const KEY_PREFIX = "openai-insecure-api-key."; // how a browser, which cannot set headers, hands over a bearer key

/** Milliseconds before try `attempt` (from 0): doubling, capped, spread by up to a half so that tabs do not march together. */
export function backoff(attempt, random = Math.random) {
  const full = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt);
  return Math.round(full * (1 - random() / 2));
}

export function subprotocols(key) {
  return key ? ["realtime", KEY_PREFIX + key] : [];
}

const NEEDS_KEY = "This server asks for an API key; enter it in the settings.";
const WRONG_KEY = "The server refused this API key; enter another one in the settings.";
const ODD_KEY = "This API key holds a character that a browser cannot send; enter another one in the settings.";

// In the shape of the server's own error events; the id belongs to no event of ours, so it refuses no turn.
const UNREADABLE = {
  type: "error",
  error: { message: "The server sent a message that this page cannot read; is it a Paceline server?", event_id: "unreadable" },
};

const CLOSED = new Map([
  [1001, "The server is going away"],
  [1008, "The server refused this session by its policy"],
  [1009, "A message was too big for the server"],
  [1011, "The server met a fault"],
  [1012, "The server is restarting"],
  [1013, "The server is too busy"],
]);

const REFUSED = new Map([
  [426, "The server did not take the request as a WebSocket; check the proxy in front of it"],
  [429, "The server has too many connections"],
  [503, "The server is not ready"],
]);

/** What a refusal says about itself, as a clause; an answer that is not the server's own error has nothing to say. */
async function ownWords(answer) {
  try {
    return (await answer.json()).error.message.replace(/\.$/, "");
  } catch {
    return undefined;
  }
}

/** Why an open socket closed, in words that a "trying again" can follow. */
export function closeReason(code) {
  return CLOSED.get(code) ?? "The connection was lost";
}

export class Link {
  #socket = null;
  #timer = null;
  #attempt = 0;
  #openedAt = null;
  #options;
  #outside;

  /**
   * `options`: url (ws: or wss:), probe (an http address that answers 401 when a key is needed), key, and the handlers
   * onEvent(event), onDown(), onState(state, sentence) with state connecting | open | waiting | locked.
   * `outside` replaces the browser's WebSocket, fetch, timers and clock in tests.
   */
  constructor(options, outside = {}) {
    this.#options = { key: "", ...options };
    this.#outside = {
      WebSocket: globalThis.WebSocket,
      fetch: (...args) => fetch(...args),
      setTimeout: (run, ms) => setTimeout(run, ms),
      clearTimeout: (timer) => clearTimeout(timer),
      now: () => performance.now(),
      random: Math.random,
      ...outside,
    };
  }

  get key() {
    return this.#options.key;
  }

  set key(key) {
    this.#options.key = key;
    this.renew();
  }

  /** A new socket, and so a new session, at once; whatever the old one still says is not heard. */
  renew() {
    this.#attempt = 0;
    this.#drop();
    this.#connect();
  }

  /** Ends a wait early: the network came back, or the person is about to write. */
  hurry() {
    if (this.#timer !== null) this.renew();
  }

  send(event) {
    this.#socket?.send(JSON.stringify(event));
  }

  #drop() {
    this.#outside.clearTimeout(this.#timer);
    this.#timer = null;
    const old = this.#socket;
    this.#socket = null; // first, so that its last words are ignored
    old?.close(1000);
  }

  #state(state, sentence = "") {
    this.#options.onState(state, sentence);
  }

  #connect() {
    this.#state("connecting");
    this.#openedAt = null;
    let socket;
    try {
      socket = new this.#outside.WebSocket(this.#options.url, subprotocols(this.#options.key));
    } catch {
      this.#state("locked", ODD_KEY); // the constructor throws for a subprotocol that is no HTTP token
      return;
    }
    this.#socket = socket;
    const current = (handle) => (event) => socket === this.#socket && handle(event);
    socket.onopen = current(() => {
      this.#openedAt = this.#outside.now();
      this.#state("open");
    });
    socket.onmessage = current(({ data }) => this.#receive(data));
    socket.onclose = current(({ code }) => this.#closed(code));
  }

  #receive(data) {
    let event = null;
    try {
      event = JSON.parse(data);
    } catch {
      // told below, together with JSON that is no event
    }
    this.#options.onEvent(typeof event?.type === "string" ? event : UNREADABLE);
  }

  #closed(code) {
    this.#socket = null;
    this.#options.onDown();
    if (this.#openedAt === null) {
      this.#explainRefusal();
      return;
    }
    if (this.#outside.now() - this.#openedAt >= SETTLED_MS) this.#attempt = 0;
    this.#wait(closeReason(code));
  }

  // A browser does not tell a page why a socket was refused, so an ordinary request asks the same question.
  async #explainRefusal() {
    const key = this.#options.key;
    let status = 0;
    let reason = "The server cannot be reached";
    try {
      const headers = key ? { authorization: `Bearer ${key}` } : {};
      const answer = await this.#outside.fetch(this.#options.probe, { headers, cache: "no-store" });
      status = answer.status;
      reason = REFUSED.get(status) ?? (answer.ok ? undefined : await ownWords(answer)) ?? "The server refused the connection";
    } catch {
      // no answer at all
    }
    if (this.#socket !== null || key !== this.#options.key) return; // renewed while we asked
    if (status === 401) this.#state("locked", key ? WRONG_KEY : NEEDS_KEY);
    else this.#wait(reason);
  }

  #wait(reason) {
    const ms = backoff(this.#attempt, this.#outside.random);
    this.#attempt += 1;
    this.#state("waiting", `${reason}; trying again ${ms < 1500 ? "in a moment" : `in ${Math.round(ms / 1000)} seconds`}.`);
    this.#timer = this.#outside.setTimeout(() => {
      this.#timer = null;
      this.#connect();
    }, ms);
  }
}
