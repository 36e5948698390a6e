import assert from "node:assert/strict";
import test from "node:test";

import { backoff, closeReason, Link, subprotocols } from "../../web/socket.js";

// The outside world by hand: sockets that do what the test says, and timers that fire when the test says.
class World {
  sockets = [];
  timers = new Map();
  heard = [];
  states = [];
  time = 0;
  status = 200;
  body = {};

  constructor(key = "") {
    const world = this;
    class Socket {
      sent = [];
      constructor(url, protocols) {
        if (protocols.some((name) => /[^\w.~-]/.test(name))) throw new SyntaxError("no token");
        Object.assign(this, { url, protocols });
        world.sockets.push(this);
      }
      send(text) {
        this.sent.push(text);
      }
      close(code) {
        this.closedWith = code;
      }
    }
    this.link = new Link(
      {
        url: "ws://host/v1/realtime",
        probe: "http://host/v1/models",
        key,
        onEvent: (event) => this.heard.push(event),
        onDown: () => this.heard.push("down"),
        onState: (state, sentence) => this.states.push([state, sentence]),
      },
      {
        WebSocket: Socket,
        fetch: async (url, options) => {
          this.asked = { url, ...options };
          if (this.status === 0) throw new TypeError("no network");
          return new Response(JSON.stringify(this.body), { status: this.status });
        },
        setTimeout: (run, ms) => {
          const timer = this.timers.size + 1;
          this.timers.set(timer, { run, ms });
          return timer;
        },
        clearTimeout: (timer) => this.timers.delete(timer),
        now: () => this.time,
        random: () => 0,
      },
    );
  }

  get socket() {
    return this.sockets.at(-1);
  }

  fire() {
    const [[timer, { run, ms }]] = this.timers;
    this.timers.delete(timer);
    run();
    return ms;
  }
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 20)); // reading a body takes a few turns

test("waits double up to a cap and spread by a half", () => {
  assert.deepEqual([0, 1, 2, 3].map((attempt) => backoff(attempt, () => 0)), [500, 1000, 2000, 4000]);
  assert.equal(backoff(50, () => 0), 15_000);
  assert.equal(backoff(0, () => 1), 250);
});

test("a key rides in the subprotocols and nowhere else", () => {
  assert.deepEqual(subprotocols(""), []);
  assert.deepEqual(subprotocols("k-1"), ["realtime", "openai-insecure-api-key.k-1"]);
  const world = new World("k-1");
  world.link.renew();
  assert.deepEqual(world.socket.protocols, ["realtime", "openai-insecure-api-key.k-1"]);
  assert.ok(!world.socket.url.includes("k-1"));
});

test("events go out and come in as JSON; an unreadable message becomes an error with a sentence", () => {
  const world = new World();
  world.link.renew();
  world.socket.onopen({});
  world.link.send({ type: "x" });
  assert.deepEqual(world.socket.sent, ['{"type":"x"}']);
  world.socket.onmessage({ data: '{"type":"session.created"}' });
  for (const data of ["{", "null", "[]", '{"type":3}']) world.socket.onmessage({ data });
  assert.deepEqual(world.heard.map(({ type }) => type), ["session.created", "error", "error", "error", "error"]);
  assert.match(world.heard[1].error.message, /cannot read/);
});

test("a dropped socket is opened again, later and later, and a healthy one starts the waits over", () => {
  const world = new World();
  world.link.renew();
  const waits = [];
  for (let round = 0; round < 3; round += 1) {
    world.socket.onopen({});
    world.socket.onclose({ code: 1012 });
    assert.deepEqual(world.states.at(-1)[0], "waiting");
    assert.match(world.states.at(-1)[1], /^The server is restarting; trying again /);
    waits.push(world.fire());
  }
  world.socket.onopen({});
  world.time += 10_000;
  world.socket.onclose({ code: 1006 });
  assert.match(world.states.at(-1)[1], /^The connection was lost; /);
  waits.push(world.fire());
  assert.deepEqual(waits, [500, 1000, 2000, 500]);
  assert.equal(world.heard.filter((word) => word === "down").length, 4);
});

for (const code of [1001, 1008, 1009, 1011, 1012, 1013, 4999]) {
  test(`close code ${code} has words`, () => assert.match(closeReason(code), /^(The|A) \w+/));
}

for (const [key, status, state, words] of [
  ["", 401, "locked", /asks for an API key/],
  ["k", 401, "locked", /refused this API key/],
  ["", 403, "waiting", /refused the connection; trying again/],
  ["", 503, "waiting", /not ready; trying again/],
  ["", 429, "waiting", /too many connections; trying again/],
  ["", 200, "waiting", /refused the connection; trying again/],
  ["", 0, "waiting", /cannot be reached; trying again/],
]) {
  test(`a socket denied with status ${status} and key "${key}" is explained`, async () => {
    const world = new World(key);
    world.status = status;
    world.link.renew();
    world.socket.onclose({ code: 1006 });
    await settled();
    assert.equal(world.states.at(-1)[0], state);
    assert.match(world.states.at(-1)[1], words);
    assert.equal(world.asked.url, "http://host/v1/models");
    assert.deepEqual(world.asked.headers, key ? { authorization: "Bearer k" } : {});
    assert.equal(world.timers.size, state === "waiting" ? 1 : 0); // a locked door is not rattled
  });
}

test("a refusal that explains itself is quoted", async () => {
  const world = new World();
  world.status = 403;
  world.body = { error: { message: "The host 'x' is not served here; allow it." } };
  world.link.renew();
  world.socket.onclose({ code: 1006 });
  await settled();
  assert.match(world.states.at(-1)[1], /^The host 'x' is not served here; allow it; trying again /);
});

test("a new key opens a new socket at once, and an answer about the old one is not heard", async () => {
  const world = new World();
  world.status = 401;
  world.link.renew();
  world.socket.onclose({ code: 1006 });
  world.link.key = "k";
  await settled();
  assert.equal(world.sockets.length, 2);
  assert.equal(world.states.at(-1)[0], "connecting");
});

test("a key that no browser can send is named, without a try", () => {
  const world = new World("a key");
  world.link.renew();
  assert.equal(world.sockets.length, 0);
  assert.equal(world.states.at(-1)[0], "locked");
  assert.match(world.states.at(-1)[1], /character/);
});

test("renew leaves the old socket and hears nothing more of it", () => {
  const world = new World();
  world.link.renew();
  const old = world.socket;
  old.onopen({});
  world.link.renew();
  assert.equal(old.closedWith, 1000);
  old.onmessage({ data: '{"type":"error"}' });
  old.onclose({ code: 1000 });
  assert.deepEqual(world.heard, []);
  assert.equal(world.timers.size, 0);
});

test("hurry ends a wait and only a wait", () => {
  const world = new World();
  world.link.renew();
  world.link.hurry();
  assert.equal(world.sockets.length, 1);
  world.socket.onopen({});
  world.socket.onclose({ code: 1013 });
  world.link.hurry();
  assert.equal(world.sockets.length, 2);
  assert.equal(world.timers.size, 0);
});
