import { describe, expect, it } from "vitest";
import { Cursor } from "../../src/spec/cursor";
import { Trace } from "../../src/spec/trace";
import { demo } from "./demo";

function started(steps: number) {
  const reply = demo({ nodes: 3 });
  const trace = new Trace(0);
  const more = (count: number) => {
    for (let step = 0; step < count; step += 1) {
      const { text, spec } = reply.next().value;
      trace.push(text, spec, 0);
    }
  };
  more(steps);
  return { trace, more, cursor: new Cursor(trace) };
}

describe("Cursor", () => {
  it("follows the newest step until one is held", () => {
    const { trace, more, cursor } = started(3);
    expect(cursor.shown).toEqual({ index: 2, step: trace.steps[2] });
    more(1);
    expect(cursor.shown?.index).toBe(3);
    cursor.pause();
    more(1);
    expect(cursor.shown?.index).toBe(3);
    cursor.follow();
    expect(cursor.shown?.index).toBe(4);
  });

  it("goes back and forth and stays within the reply", () => {
    const { cursor } = started(5);
    cursor.move(-2);
    expect(cursor.held.value?.index).toBe(2);
    cursor.move(-9);
    expect(cursor.shown?.index).toBe(0);
    cursor.move(99);
    expect(cursor.shown?.index).toBe(4);
  });

  it("goes on showing a step that the trace has dropped, and moves to the nearest that is kept", () => {
    const { trace, more, cursor } = started(2);
    cursor.pause();
    const held = cursor.shown;
    more(700);
    expect(trace.step(1)).toBeUndefined();
    expect(cursor.shown).toBe(held);
    cursor.move(1);
    expect(cursor.shown?.index).toBe(trace.dropped);
  });

  it("shows nothing before the first step", () => {
    const { cursor } = started(0);
    cursor.pause();
    cursor.move(1);
    cursor.oldest();
    expect(cursor.shown).toBeNull();
  });
});
