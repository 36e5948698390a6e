// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { Cursor } from "../../src/spec/cursor";
import { onStepKey, stepKey } from "../../src/spec/keys";
import { Trace } from "../../src/spec/trace";
import { demoDeltas } from "./demo";

/** A cursor of a reply of so many steps. */
function held(steps: number): Cursor {
  const trace = new Trace(0);
  for (const { text, spec } of demoDeltas(steps, { nodes: 3 })) trace.push(text, spec, 0);
  return new Cursor(trace);
}

describe("stepKey", () => {
  it("moves by keys, up and down on a slider only", () => {
    const cursor = held(30);
    const at = (key: string, slider = false) => [stepKey(cursor, key, slider), cursor.held.value?.index ?? "newest"];
    expect(at("ArrowLeft")).toEqual([true, 28]);
    expect(at("ArrowRight")).toEqual([true, 29]);
    expect(at("ArrowDown")).toEqual([false, 29]);
    expect(at("ArrowDown", true)).toEqual([true, 28]);
    expect(at("PageDown", true)).toEqual([true, 18]);
    expect(at("ArrowUp", true)).toEqual([true, 19]);
    expect(at("Home")).toEqual([true, 0]);
    expect(at("toString")).toEqual([false, 0]);
    expect(at("End")).toEqual([true, "newest"]);
  });
});

describe("onStepKey", () => {
  const press = (cursor: Cursor, key: string, modifiers: KeyboardEventInit = {}) => {
    const event = new KeyboardEvent("keydown", { key, cancelable: true, ...modifiers });
    onStepKey(cursor, false)(event);
    return event.defaultPrevented;
  };

  it("takes the keys it knows from the browser, and no others", () => {
    const cursor = held(5);
    expect(press(cursor, "ArrowLeft")).toBe(true);
    expect(cursor.held.value?.index).toBe(3);
    expect(press(cursor, "PageUp")).toBe(false);
    expect(press(cursor, "Tab")).toBe(false);
  });

  it.each(["altKey", "ctrlKey", "metaKey", "shiftKey"])("leaves what is pressed with %s to the browser", (modifier) => {
    const cursor = held(5);
    expect(press(cursor, "ArrowLeft", { [modifier]: true })).toBe(false);
    expect(cursor.held.value).toBeNull();
  });
});
