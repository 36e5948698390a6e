import { describe, expect, it } from "vitest";
import { Exchange } from "../../src/voice/exchange";
import { Session } from "../../src/voice/session";
import type { ClientEvent } from "../../src/wire/events";
import { HandClock, HandVoice, REPLY, truncate } from "./fakes";

const ASKING = { instructions: "Be brief.", body: {} };

/** An exchange whose session is there, and what went out. */
function begun() {
  const sent: ClientEvent[] = [];
  const session = new Session({ send: (event) => sent.push(event), renew: () => {} });
  session.linked = true;
  const exchange = new Exchange({ voice: new HandVoice(), clock: new HandClock() }, session);
  const take = () => sent.splice(0).map(({ event_id: _, ...event }) => event);
  return { exchange, session, take };
}

/** One whose reply has come, but for its end. */
function answered() {
  const all = begun();
  const { exchange, take } = all;
  exchange.pending.hear("How far?", true);
  exchange.ask(ASKING, () => {});
  for (const event of [
    { type: "input_text.committed", item_id: "user_1" },
    { type: "response.output_item.added", item: { id: "reply_1" } },
    { type: "response.output_text.delta", delta: REPLY },
  ])
    exchange.receive(event, true);
  take();
  return all;
}

describe("Exchange", () => {
  it("asks the words that were spoken, and names them and the reply as the server does", () => {
    const { exchange } = answered();
    expect(exchange.pending.text).toBe("");
    expect(exchange.conversation.lines).toEqual([{ id: "user_1", role: "user", text: "How far?", cut: false }]);
    expect([exchange.reply?.itemId, exchange.reply?.text]).toEqual(["reply_1", REPLY]);
  });

  it("hears no text of a reply that does not run", () => {
    const { exchange } = answered();
    exchange.receive({ type: "response.output_text.delta", delta: " More." }, false);
    expect(exchange.reply?.text).toBe(REPLY);
  });

  it("keeps what was heard, and tells the session", () => {
    const { exchange, take } = answered();
    const { reply } = exchange;
    if (!reply) throw new Error("there is no reply");
    exchange.conversation.answered(reply);
    reply.heard = 10;
    exchange.cut();
    expect(take()).toEqual([truncate(10)]);
    expect(exchange.conversation.lines.at(-1)).toMatchObject({ text: "It is far.", cut: true });
    expect(reply.turn.cut).toEqual({ length: REPLY.length, heard: 10 });
  });

  it("cuts nothing that was heard to its end", () => {
    const { exchange, take } = answered();
    if (exchange.reply) exchange.reply.heard = REPLY.length;
    exchange.cut();
    expect(take()).toEqual([]);
  });

  it("gives the words of an unanswered turn back, and a new session all there is", () => {
    const { exchange, take } = answered();
    exchange.withdraw();
    expect([exchange.pending.text, exchange.turns, exchange.reply]).toEqual(["How far?", [], null]);
    exchange.conversation.said("Hello.");
    exchange.putBack();
    expect(take().map(({ type }) => type)).toEqual(["conversation.item.create", "input_text.append"]);
  });

  it("remembers the times of a bounded number of turns", () => {
    const { exchange } = begun();
    for (let i = 0; i < 30; i += 1) exchange.ask(ASKING, () => {});
    expect(exchange.turns).toHaveLength(20);
  });
});
