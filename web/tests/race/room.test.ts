// @vitest-environment jsdom

import { signal } from "@preact/signals";
import { describe, expect, it } from "vitest";
import { Room } from "../../src/race/room";
import type { Link, LinkOptions } from "../../src/wire/link";
import { delta, done, PLAN } from "./fixtures";

/** A room whose server says what the test says, by a clock that the test sets; watched: by somebody who likes motion. */
function entered(watched = false) {
  const told: string[] = [];
  const clock = { now: 0 };
  const expected = { on: false };
  let handlers: Pick<LinkOptions, "onEvent" | "onDown" | "onState"> | null = null;
  const link = {
    renew: () => told.push("open"),
    send: ({ event_id }: { event_id?: string }) => told.push(event_id ?? ""),
    close: () => told.push("close"),
    expect: (on: boolean) => {
      expected.on = on;
    },
  };
  const server = {
    model: signal(""),
    headers: {},
    url: (path: string) => `http://127.0.0.1:9/${path}`, // where nobody answers
    link: (given: typeof handlers) => {
      handlers = given;
      return link as unknown as Link;
    },
  };
  const room = new Room(
    server,
    () => clock.now,
    () => watched,
  );
  const say = (event: Parameters<LinkOptions["onEvent"]>[0], now: number) => {
    clock.now = now;
    handlers?.onEvent(event);
  };
  return {
    room,
    told,
    say,
    server,
    clock,
    expected,
    state: (...state: Parameters<LinkOptions["onState"]>) => handlers?.onState(...state),
  };
}

function raced(watched = false) {
  const all = entered(watched);
  const { room, say } = all;
  const { now } = all.clock;
  room.start(PLAN);
  say({ type: "session.created", session: { model: "tiny" } }, now);
  say(done(1), now);
  for (const lane of [300, 400]) {
    say(delta("One", { drafted: 0, accepted: 0, emitted: 1 }), now + lane - 50);
    say(done(1), now + lane);
  }
  return all;
}

describe("Room", () => {
  it("runs a race over a socket of its own, and judges it", () => {
    const { room, told, server } = raced();
    expect(told).toEqual(["open", "race-warm", "race-plain", "race-speculating", "close"]);
    expect(server.model.value).toBe("tiny");
    expect(room.outcome?.total).toEqual({ plain: 300, speculating: 100 });
    expect(room.results.rows.map(({ runs }) => runs)).toEqual([1]);
    expect(room.moment()).toEqual({ at: 300, playing: false });
  });

  it("lets the other lane run first the next time", () => {
    const { room, told, say } = raced();
    told.length = 0;
    room.start(PLAN);
    expect([room.outcome, room.moment()]).toEqual([null, null]);
    say({ type: "session.created" }, 500);
    say(done(1), 500);
    expect(told).toEqual(["open", "race-warm", "race-speculating"]);
  });

  it("says whether a race runs, once it is drawn", () => {
    const { room, told } = entered();
    expect(room.running.value).toBe(false);
    room.start(PLAN);
    expect(room.running.value).toBe(true);
    room.start(PLAN); // pressed twice
    expect(told).toEqual(["open"]);
    room.stop();
    expect(room.running.value).toBe(false);
    expect(told).toEqual(["open", "close"]);
    expect(room.outcome).toBeNull();
  });

  it("hears what becomes of the socket", () => {
    const { room, told, state, expected } = entered();
    room.start(PLAN);
    expect(expected.on).toBe(true); // a lost network is to be noticed
    state("waiting", "Away; trying again.");
    expect(room.race.notice).toBe("Away; trying again.");
    expect(room.spoken.value).toBe("Away; trying again.");
    state("connecting", "");
    state("waiting", "Away; trying again in 9 seconds.");
    expect(room.spoken.value).toBe("Away; trying again."); // once for an outage
    state("locked", "Needs a key.");
    expect(room.spoken.value).toBe("Away; trying again."); // why the race ended is said with its verdict
    expect([room.race.phase, told.at(-1), expected.on]).toEqual(["failed", "close", false]);
  });

  it("runs on unseen without drawing, and draws what it has become", () => {
    const { room, say } = entered();
    room.start(PLAN);
    say({ type: "session.created" }, 0);
    const drawn = room.frames.tick.value;
    room.show(false);
    for (const time of [10, 20, 30]) say(done(1), time);
    room.frames.now();
    expect(room.outcome).not.toBeNull();
    expect(room.frames.tick.value).toBe(drawn);
    room.show(true);
    expect(room.frames.tick.value).toBe(drawn + 1);
    room.show(false);
    room.show(true);
    expect(room.frames.tick.value).toBe(drawn + 1);
  });

  it("plays a race that ended in sight at once, and no other", () => {
    const { room, clock } = raced(true);
    expect(room.moment()).toEqual({ at: 0, playing: true });
    clock.now += 120;
    expect(room.moment()).toEqual({ at: 120, playing: true });
    expect(raced(false).room.moment()?.playing).toBe(false);
    const { room: left, say } = entered(true);
    left.start(PLAN);
    say({ type: "session.created" }, 0);
    left.show(false);
    for (const time of [10, 20, 30]) say(done(1), time);
    left.show(true);
    expect(left.moment()).toEqual({ at: 10, playing: false });
  });

  it("does not play on unseen", () => {
    const { room, clock } = raced();
    room.toggle();
    clock.now += 120;
    room.show(false);
    clock.now += 100;
    expect(room.moment()).toEqual({ at: 120, playing: false });
  });

  it("plays the race again, pauses, and moves", () => {
    const { room, clock } = raced();
    room.toggle();
    clock.now += 120;
    expect(room.moment()).toEqual({ at: 120, playing: true });
    room.pace(0.5);
    clock.now += 100;
    expect(room.moment()).toEqual({ at: 170, playing: true });
    room.toggle();
    clock.now += 100;
    expect(room.moment()).toEqual({ at: 170, playing: false });
    room.seek(40);
    expect(room.moment()).toEqual({ at: 40, playing: false });
  });
});
