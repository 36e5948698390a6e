import { expect, test } from "vitest";
import { subprotocols } from "../../src/wire/link";
import { settled, World } from "./world";

/** Of the timers that run, in milliseconds. */
const waits = (world: World) => [...world.timers].map(({ ms }) => ms);

test("a key rides in the subprotocols and nowhere else", () => {
  expect(subprotocols("")).toEqual([]);
  const world = new World("k-1");
  world.link.renew();
  expect(world.socket.protocols).toEqual(["realtime", "openai-insecure-api-key.k-1"]);
  expect(world.socket.url).not.toContain("k-1");
});

test("events go out and come in as JSON; an unreadable message becomes an error with a sentence", () => {
  const world = new World();
  world.link.renew();
  world.socket.open();
  world.link.send({ type: "x" });
  expect(world.socket.sent).toEqual(['{"type":"x"}']);
  world.socket.say('{"type":"session.created"}');
  for (const data of ["{", "null", "[]", '{"type":3}']) world.socket.say(data);
  const events = world.heard.filter((heard) => heard !== "down");
  expect(events.map(({ type }) => type)).toEqual(["session.created", "error", "error", "error", "error"]);
  expect(events[1]?.error?.message).toMatch(/cannot read/);
});

test("nothing is sent into a socket that is not open", () => {
  const world = new World();
  world.link.send({ type: "x" });
  world.link.renew();
  world.link.send({ type: "x" });
  expect(world.socket.sent).toEqual([]);
});

test("a dropped socket is opened again, later and later, and a healthy one starts the waits over", () => {
  const world = new World();
  world.link.renew();
  const waits: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    world.socket.open();
    world.socket.drop(1012);
    expect(world.state).toBe("waiting");
    expect(world.sentence).toMatch(/^The server is restarting; trying again /);
    waits.push(world.fire());
  }
  world.socket.open();
  world.time += 10_000;
  world.socket.drop(1006);
  expect(world.sentence).toMatch(/^The connection was lost; /);
  waits.push(world.fire());
  expect(waits).toEqual([500, 1000, 2000, 500]);
  expect(world.heard).toEqual(Array(4).fill("down"));
});

test("a session that another connection took up is told by its code, and a new one is there at once", () => {
  const world = new World();
  world.link.renew();
  world.socket.open();
  world.socket.drop(4409);
  expect([world.code, world.state, world.sockets.length]).toEqual([4409, "connecting", 2]);
});

test.each([
  ["", 401, "locked", /asks for an API key/],
  ["k", 401, "locked", /refused this API key/],
  ["", 403, "waiting", /refused the connection; trying again/],
  ["", 503, "waiting", /not ready; trying again/],
  ["", 429, "waiting", /too many connections; trying again/],
  ["", 200, "waiting", /refused the connection; trying again/],
  ["", 0, "waiting", /cannot be reached; trying again/],
] as const)("with key %j a socket denied with status %i is explained", async (key, status, state, words) => {
  const world = new World(key);
  world.status = status;
  world.link.renew();
  world.socket.drop(1006);
  await settled();
  expect(world.state).toBe(state);
  expect(world.sentence).toMatch(words);
  expect(world.asked).toEqual({ url: "http://host/v1/models", headers: key ? { authorization: "Bearer k" } : {} });
  expect(world.timers.size).toBe(state === "waiting" ? 1 : 0); // a locked door is not rattled
});

test("a refusal that explains itself is quoted", async () => {
  const world = new World();
  world.status = 403;
  world.body = { error: { message: "The host 'x' is not served here; allow it." } };
  world.link.renew();
  world.socket.drop(1006);
  await settled();
  expect(world.sentence).toMatch(/^The host 'x' is not served here; allow it; trying again /);
});

test("a new key opens a new socket at once, and an answer about the old one is not heard", async () => {
  const world = new World();
  world.status = 401;
  world.link.renew();
  world.socket.drop(1006);
  world.link.key = "k";
  await settled();
  expect(world.sockets.length).toBe(2);
  expect(world.state).toBe("connecting");
});

test("a key that is no subprotocol opens the socket by a short-lived one", async () => {
  const world = new World("a/b+c==");
  world.body = { value: "ek_1" };
  world.link.renew();
  await settled();
  expect(world.asked).toEqual({
    url: "http://host/v1/secrets",
    headers: { authorization: "Bearer a/b+c==", "content-type": "application/json" },
  });
  expect(world.sockets.map(({ protocols }) => protocols)).toEqual([["realtime", "openai-insecure-api-key.ek_1"]]);
  expect(waits(world)).toEqual([10_000]); // for the socket's first word
});

test.each([
  ["a/b", 401, "locked", /refused this API key/],
  ["a/b", 404, "locked", /character/],
  ["a/b", 503, "waiting", /not ready; trying again/],
  ["a/b", 0, "waiting", /cannot be reached; trying again/],
  ["a/b", 200, "waiting", /refused the connection; trying again/],
  ["é\u2028", 0, "locked", /character/],
] as const)("where the key %j gets %i instead of one, that is told", async (key, status, state, words) => {
  const world = new World(key);
  world.status = status;
  world.link.renew();
  await settled();
  expect([world.sockets.length, world.state]).toEqual([0, state]);
  expect(world.sentence).toMatch(words);
});

test("a short-lived key that comes too late opens nothing", async () => {
  const world = new World("a/b");
  world.body = { value: "ek_1" };
  world.link.renew();
  world.link.close();
  await settled();
  expect(world.sockets).toEqual([]);
});

class Forbidden {
  constructor() {
    throw new DOMException("no", "SecurityError");
  }
}

test.each([
  ["are missing", {}],
  ["are forbidden", Forbidden],
])("where WebSockets %s, that is told", (_, Socket) => {
  const world = new World("k", Socket);
  world.link.renew();
  world.link.send({ type: "x" });
  expect(world.state).toBe("waiting");
  expect(world.sentence).toMatch(/opens no WebSocket .*trying again/);
});

test("renew leaves the old socket and hears nothing more of it", () => {
  const world = new World();
  world.link.renew();
  const old = world.socket;
  old.open();
  world.link.renew();
  expect(old.closedWith).toBe(1000);
  old.say('{"type":"error"}');
  old.drop(1000);
  expect(world.heard).toEqual([]);
  expect(waits(world)).toEqual([10_000]); // for the new socket's first word
});

test("hurry ends a wait and only a wait", () => {
  const world = new World();
  world.link.renew();
  world.link.hurry();
  expect(world.sockets.length).toBe(1);
  world.socket.open();
  world.socket.drop(1013);
  world.link.hurry();
  expect(world.sockets.length).toBe(2);
  expect(waits(world)).toEqual([10_000]); // for the new socket's first word
});

test("close is for good", () => {
  const world = new World();
  world.link.renew();
  world.socket.open();
  world.socket.drop(1012);
  world.link.close();
  expect(world.timers.size).toBe(0);
});

test.each(["down", "waiting"] as const)("a listener that hears %s may close it for good", (heard) => {
  const world = new World();
  world.react = (told) => told === heard && world.link.close();
  world.link.renew();
  world.socket.open();
  world.socket.drop(1006);
  expect(world.timers.size).toBe(0);
});

test("what is closed while it asks why it was refused stays closed", async () => {
  const world = new World();
  world.status = 503;
  world.link.renew();
  world.socket.drop(1006);
  world.link.close();
  await settled();
  expect(world.timers.size).toBe(0);
  expect(world.states.map(([state]) => state)).toEqual(["connecting"]);
});

test.each([false, true])(
  "a server that says nothing (socket open: %s) is left after a while, and tried again",
  (open) => {
    const world = new World();
    world.link.renew();
    const { socket } = world;
    if (open) socket.open();
    expect(world.fire()).toBe(10_000);
    expect(socket.closedWith).toBe(1000);
    expect(world.heard).toEqual(["down"]);
    expect(world.sentence).toBe("The server does not answer; trying again in a moment.");
    world.fire();
    world.socket.open();
    world.socket.say('{"type":"session.created"}');
    expect(world.timers.size).toBe(0);
    expect(world.state).toBe("open");
  },
);

test("a question that gets no answer ends in another try", async () => {
  const world = new World();
  world.status = Number.NaN; // never answers
  world.link.renew();
  world.socket.drop(1006);
  expect(world.fire()).toBe(10_000);
  await settled();
  expect(world.sentence).toMatch(/^The server does not answer; trying again /);
});

/** A link whose session has begun. */
function talking(): World {
  const world = new World();
  world.link.renew();
  world.socket.open();
  world.socket.say('{"type":"session.created"}');
  return world;
}

test("a socket that falls silent during a reply is asked for an answer, and left where none comes", () => {
  const world = talking();
  expect(waits(world)).toEqual([]); // nothing is expected: silence is nothing odd
  world.link.expect(true);
  expect(world.fire()).toBe(10_000);
  expect(world.socket.sent).toEqual(['{"type":"session.update","session":{"type":"realtime"}}']);
  expect(world.state).toBe("open");
  expect(world.fire()).toBe(5_000);
  expect(world.socket.closedWith).toBe(1000);
  expect(world.heard.at(-1)).toBe("down");
  expect(world.sentence).toBe("The server does not answer; trying again in a moment.");
  world.fire();
  world.socket.open();
  world.socket.say('{"type":"session.created"}');
  expect(waits(world)).toEqual([10_000]); // the reply is taken up there, and the same holds for it
});

test("a slow reply is no lost socket: whatever the server says ends the doubt", () => {
  const world = talking();
  world.link.expect(true);
  world.fire();
  world.socket.say('{"type":"session.updated"}');
  expect(waits(world)).toEqual([10_000]);
  world.link.expect(false);
  world.socket.say('{"type":"response.done"}');
  expect(waits(world)).toEqual([]);
});

test("a check asks an open socket at once, ends a wait, and leaves a try alone", () => {
  const world = talking();
  world.link.check();
  expect(world.socket.sent).toHaveLength(1);
  world.link.expect(true); // does not put off what is due
  expect(waits(world)).toEqual([5_000]);
  world.fire();
  expect(world.state).toBe("waiting");
  world.link.check();
  world.link.check();
  expect(world.sockets.length).toBe(2);
  expect(waits(world)).toEqual([10_000]);
});
