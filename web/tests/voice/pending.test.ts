import { describe, expect, it } from "vitest";
import { Pending } from "../../src/voice/pending";
import { HandClock } from "./fakes";

const append = (text: string) => ({ type: "input_text.append", text });
const CLEAR = { type: "input_text.clear" };
const prefilled = (text_end: number) => ({ type: "x_input_text.prefilled", tokens: 9, text_end });

describe("Pending", () => {
  it("sends the rest of what goes on, and everything of what was revised", () => {
    const pending = new Pending(new HandClock());
    expect(pending.hear("so", true)).toEqual([append("so")]);
    expect(pending.hear("so I'm", true)).toEqual([append(" I'm")]);
    expect(pending.hear("so I'm", true)).toEqual([]);
    expect(pending.hear("So I'm planting", true)).toEqual([CLEAR, append("So I'm planting")]);
    expect(pending.hear("", true)).toEqual([CLEAR]);
    expect(pending.hear("Well", true)).toEqual([append("Well")]);
  });

  it("marks what is computed, without the word that may still change", () => {
    const pending = new Pending(new HandClock());
    pending.hear("🌙 How far is", true);
    pending.prefilled(prefilled(12));
    expect(pending.text.slice(0, pending.ready)).toBe("🌙 How far");
    pending.hear("🌙 How fast is it", true); // what both have in common is still computed
    expect(pending.text.slice(0, pending.ready)).toBe("🌙 How fa");
  });

  it("leaves the words unmarked where the server does not say how far it is", () => {
    const pending = new Pending(new HandClock());
    pending.hear("How far is", true);
    pending.prefilled({ type: "x_input_text.prefilled", tokens: 9, cached_tokens: 5 });
    expect(pending.ready).toBe(0);
    expect(pending.turn?.ready).toHaveLength(1);
  });

  it("does not take news of older words for news of these", () => {
    const pending = new Pending(new HandClock());
    pending.hear("one two three", true);
    pending.hear("four five six", true);
    pending.prefilled(prefilled(13));
    expect(pending.ready).toBe(0);
    pending.answered();
    pending.prefilled(prefilled(13));
    expect(pending.ready).toBe(9);
    pending.commit();
    pending.hear("seven eight nine", true);
    pending.prefilled(prefilled(13));
    expect(pending.ready).toBe(0);
  });

  it("goes on behind words that were kept", () => {
    const pending = new Pending(new HandClock());
    pending.hear("and then", false);
    pending.takeBack("First this");
    pending.end();
    expect(pending.hear("that", true)).toEqual([append("First this and then that")]);
    expect(pending.commit().words).toBe("First this and then that");
    expect(pending.text).toBe("");
  });

  it("tells a new session everything", () => {
    const pending = new Pending(new HandClock());
    pending.hear("one two", true);
    pending.prefilled(prefilled(7));
    pending.lost();
    expect(pending.ready).toBe(0);
    expect(pending.putBack()).toEqual([append("one two")]);
    pending.clear();
    expect(pending.putBack()).toEqual([]);
  });
});
