// The outside world of a link by hand: sockets that do what the test says, and timers that fire when the test says.

import type { ServerEvent } from "../../src/wire/events";
import { Link, type LinkState } from "../../src/wire/link";

export class FakeSocket {
  static readonly OPEN = 1;
  readyState = 0;
  sent: string[] = [];
  closedWith: number | undefined;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor(
    readonly url: string,
    readonly protocols: string[],
  ) {
    if (protocols.some((name) => /[^\w.~-]/.test(name))) throw new SyntaxError("no token");
  }

  open(): void {
    this.readyState = FakeSocket.OPEN;
    this.onopen?.();
  }

  say(data: unknown): void {
    this.onmessage?.({ data });
  }

  drop(code: number): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(code: number): void {
    this.closedWith = code;
  }
}

export class World {
  readonly sockets: FakeSocket[] = [];
  readonly timers = new Set<{ run: () => void; ms: number }>();
  readonly heard: (ServerEvent | "down")[] = [];
  readonly states: [LinkState, string][] = [];
  readonly link: Link;
  /** What the listener does on hearing a state, or that the socket is gone. */
  react: (heard: LinkState | "down") => void = () => {};
  asked: { url: string; headers: unknown } | null = null;
  time = 0;
  /** What the last socket that is gone was closed with. */
  code: number | undefined;
  /** Of the answer to the probe; 0: there is no network, NaN: no answer ever. */
  status = 200;
  body: unknown = {};

  constructor(key = "", Socket: unknown = null) {
    const sockets = this.sockets;
    class Recorded extends FakeSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols);
        sockets.push(this);
      }
    }
    this.link = new Link(
      {
        url: "ws://host/v1/realtime",
        probe: "http://host/v1/models",
        secrets: "http://host/v1/secrets",
        key,
        onEvent: (event) => this.heard.push(event),
        onDown: (code) => {
          this.code = code;
          this.heard.push("down");
          this.react("down");
        },
        onState: (state, sentence) => {
          this.states.push([state, sentence]);
          this.react(state);
        },
      },
      {
        WebSocket: (Socket === null ? Recorded : Socket) as typeof WebSocket,
        fetch: async (url, options) => {
          this.asked = { url: String(url), headers: options?.headers };
          if (Number.isNaN(this.status)) {
            return new Promise((_, reject) =>
              options?.signal?.addEventListener("abort", () => reject(new Error("late"))),
            );
          }
          if (this.status === 0) throw new TypeError("no network");
          return new Response(JSON.stringify(this.body), { status: this.status });
        },
        clock: {
          now: () => this.time,
          after: (ms, run) => {
            const timer = { run, ms };
            this.timers.add(timer);
            return () => this.timers.delete(timer);
          },
        },
        random: () => 0,
      },
    );
  }

  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (!socket) throw new Error("no socket was opened");
    return socket;
  }

  get state(): LinkState | undefined {
    return this.states.at(-1)?.[0];
  }

  get sentence(): string | undefined {
    return this.states.at(-1)?.[1];
  }

  /** Lets the running timer fire; how long it was to wait, in milliseconds. */
  fire(): number {
    const [first] = this.timers;
    if (!first) throw new Error("no timer runs");
    this.timers.delete(first);
    first.run();
    return first.ms;
  }
}

/** Reading a body takes a few turns. */
export const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
