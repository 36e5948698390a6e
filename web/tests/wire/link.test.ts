import { describe, expect, it, vi } from "vitest";
import { Link, type LinkOptions } from "../../src/wire/link";

class Socket {
  static readonly OPEN = 1;
  static made: Socket[] = [];
  readonly readyState = Socket.OPEN;
  closedWith: number | undefined;
  onopen = () => {};
  onclose = (_: { code: number }) => {};
  constructor() {
    Socket.made.push(this);
  }
  close(code: number) {
    this.closedWith = code;
  }
}

function linked(handlers: Partial<LinkOptions> = {}) {
  Socket.made = [];
  const timers = new Map<number, () => void>();
  const answers: ((status: number) => void)[] = [];
  const states: [string, string][] = [];
  const link: Link = new Link(
    {
      url: "ws://host/v1/realtime",
      probe: "http://host/v1/models",
      onEvent: () => {},
      onDown: () => {},
      onState: (...state) => states.push(state),
      ...handlers,
    },
    {
      WebSocket: Socket as unknown as typeof WebSocket,
      fetch: () => new Promise((answer) => answers.push((status) => answer(new Response("{}", { status })))),
      setTimeout: (run) => timers.set(timers.size + 1, run).size,
      clearTimeout: (timer) => timer !== undefined && timers.delete(timer),
      now: () => 0,
      random: () => 0,
    },
  );
  link.renew();
  const socket = () => Socket.made.at(-1) as Socket;
  return { link, socket, timers, answers, states };
}

describe("Link", () => {
  it("says why it waits and tries again", () => {
    const { socket, timers, states } = linked();
    socket().onopen();
    socket().onclose({ code: 1012 });
    expect(states.at(-1)).toEqual(["waiting", "The server is restarting; trying again in a moment."]);
    for (const run of timers.values()) run();
    expect(Socket.made).toHaveLength(2);
  });

  it("may be closed by the listener that hears it is waiting", () => {
    const linkage = linked({ onState: (state) => state === "waiting" && linkage.link.close() });
    linkage.socket().onopen();
    linkage.socket().onclose({ code: 1006 });
    expect(linkage.timers.size).toBe(0);
  });

  it("may be closed by the listener that hears the socket is gone", () => {
    const linkage = linked({ onDown: () => linkage.link.close() });
    linkage.socket().onopen();
    linkage.socket().onclose({ code: 1006 });
    expect(linkage.timers.size).toBe(0);
  });

  it("stays closed when it was closed while it asked why it was refused", async () => {
    const { link, socket, timers, answers, states } = linked();
    socket().onclose({ code: 1006 });
    link.close();
    answers[0]?.(503);
    await new Promise((done) => setTimeout(done));
    expect(timers.size).toBe(0);
    expect(states.map(([state]) => state)).toEqual(["connecting"]);
  });

  it("asks why it was refused, and waits with the answer", async () => {
    const { socket, timers, answers, states } = linked();
    socket().onclose({ code: 1006 });
    answers[0]?.(503);
    await vi.waitFor(() => expect(timers.size).toBe(1));
    expect(states.at(-1)).toEqual(["waiting", "The server is not ready; trying again in a moment."]);
  });
});
