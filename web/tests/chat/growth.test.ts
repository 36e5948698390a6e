import { expect, it } from "vitest";
import { end, ending, grow, name } from "../../src/chat/growth";
import { newReply } from "../../src/chat/turns";
import { delta, SETTINGS } from "./talk";

it("has the first name that is told", () => {
  const reply = newReply(SETTINGS, 0);
  name(reply, undefined);
  expect(reply.place).toBeNull();
  name(reply, "a");
  name(reply, "b");
  expect(reply.place).toEqual({ id: "a", seq: 0 });
});

it("grows by each delta once, and not by one that says nothing", () => {
  const reply = newReply(SETTINGS, 0);
  grow(reply, delta("Hel", 1), 40);
  grow(reply, delta("lo", 2), 60);
  grow(reply, delta("lo", 2), 80);
  grow(reply, { type: "response.output_text.delta", x_seq: 9 }, 90);
  expect([reply.text, reply.place, reply.trace?.figures.tokens]).toEqual(["Hello", { id: "r", seq: 2 }, 2]);
  expect(reply.trace?.figures.ttft).toBe(40);
});

it("ends as the server says", () => {
  const reply = newReply(SETTINGS, 0);
  expect(ending(reply, {})).toEqual({ state: "done", note: "the model had nothing to say", fault: null });
  reply.text = "Hello";
  expect(ending(reply, { status: "completed" }).note).toBe("");
  expect(ending(reply, { status: "cancelled" }).state).toBe("stopped");
  expect(ending(reply, { status: "incomplete" })).toMatchObject({ state: "cut", note: "length limit reached" });
  expect(ending(reply, { status: "failed" }).fault).toMatch(/try again/);
  const error = { message: "The engine stopped." };
  expect(ending(reply, { status: "failed", status_details: { error } }).fault).toMatch(/^The engine stopped/);
});

it("says in one line how it ended and came about, and cannot be taken up any more", () => {
  const reply = newReply({ ...SETTINGS, temperature: 0 }, 0);
  name(reply, "r");
  end(reply, "stopped", "stopped");
  expect(reply).toMatchObject({ state: "stopped", place: null, note: "stopped · speculation on" });
  expect(reply.trace?.ended).toBe(true);
});
