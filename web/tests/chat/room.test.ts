// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { describe, expect, it } from "vitest";
import { Room } from "../../src/chat/room";
import type { FormValues } from "../../src/settings/parse";
import type { ClientEvent } from "../../src/wire/events";
import type { Link, LinkOptions } from "../../src/wire/link";
import { CREATED, delta, done, VALUES } from "./talk";

/** A room whose server says what the test says. */
function entered(values: Partial<FormValues> = {}) {
  const sent: ClientEvent[] = [];
  let handlers: Pick<LinkOptions, "onEvent" | "onDown" | "onState"> | null = null;
  const link = {
    send: (event: ClientEvent) => sent.push(event),
    renew: () => {},
    hurry: () => {},
    expect: () => {},
    check: () => {},
  };
  const server = {
    setKey: () => {},
    link: (given: typeof handlers) => {
      handlers = given;
      return link as unknown as Link;
    },
  };
  const room = new Room(server, signal({ ...VALUES, ...values }));
  const hear = (event: Parameters<LinkOptions["onEvent"]>[0]) => handlers?.onEvent(event);
  hear({ type: "session.created", session: { model: "tiny" } });
  return {
    room,
    sent,
    hear,
    down: (code: number) => handlers?.onDown(code),
    /** A question and its whole reply. */
    exchange: (text: string) => {
      room.write("Hi");
      room.say();
      hear(CREATED);
      hear(delta(text, 1));
      hear(done("completed"));
    },
  };
}

describe("Room", () => {
  it("says each reply, equal ones too, and each sentence", () => {
    const { room, exchange } = entered();
    exchange("One");
    const first = room.saying.value;
    expect(first).toMatchObject({ reply: room.conversation.reply, text: room.conversation.reply?.note });
    exchange("One");
    expect(room.saying.value.serial).toBe(first.serial + 1);
    room.aloud("Copied.");
    room.aloud("Copied.");
    expect(room.saying.value).toEqual({ serial: first.serial + 3, text: "Copied.", reply: null });
  });

  it("keeps the steps of the newest replies, and of the one that is looked at", () => {
    const { room, exchange } = entered();
    exchange("One");
    const [, first] = room.conversation.turns;
    room.looked.value = first?.key ?? null;
    for (let i = 0; i < 20; i += 1) exchange("More");
    const traced = () => room.conversation.turns.filter(({ trace }) => trace !== null);
    expect(traced().length).toBe(9);
    expect(room.shown).toBe(first);
    room.looked.value = null;
    exchange("Last");
    expect([traced().length, first?.trace]).toEqual([8, null]);
  });

  it("sends a prompt that is offered, and keeps what was being written", () => {
    const { room } = entered();
    room.write("My own");
    room.ask("Why?");
    expect(room.conversation.turns.map(({ text }) => text)).toEqual(["Why?", ""]);
    expect(room.draft.value).toBe("My own");
  });

  it("leaves a reply to the tab that has taken it up", () => {
    const { room, sent, hear, down } = entered();
    room.write("Hi");
    room.say();
    hear(CREATED);
    hear(delta("He", 1));
    down(4409);
    sent.length = 0;
    hear({ type: "session.created", session: { model: "tiny" } });
    expect(sent).toEqual([]);
    expect([room.conversation.elsewhere, room.saying.value.reply]).toEqual([true, null]);
  });

  it("names a system prompt that no frame holds, and sends none of it", () => {
    const { room, sent } = entered({ instructions: "x".repeat(2_000_000) });
    room.write("Hi");
    room.say();
    expect(room.problem.value).toMatchObject({ field: "instructions", sentence: expect.stringContaining("too long") });
    expect([room.draft.value, room.conversation.turns]).toEqual(["Hi", []]);
    expect(sent).toEqual([]);
  });
});
