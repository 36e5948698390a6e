import { expect, it } from "vitest";
import { type Pressed, SHORTCUTS, shortcut } from "../../src/chat/shortcuts";

const press = (code: string, more: Partial<Pressed> = {}): Pressed => ({
  code,
  altKey: true,
  shiftKey: true,
  ctrlKey: false,
  metaKey: false,
  isComposing: false,
  ...more,
});

it("knows each of its keys, once", () => {
  for (const { code, action } of SHORTCUTS) expect(shortcut(press(code))).toBe(action);
  expect(new Set(SHORTCUTS.map(({ code }) => code)).size).toBe(SHORTCUTS.length);
});

it("leaves everything else to the browser and to what is written", () => {
  expect(shortcut(press("KeyQ"))).toBeNull();
  for (const held of [
    { altKey: false },
    { shiftKey: false },
    { ctrlKey: true },
    { metaKey: true },
    { isComposing: true },
  ]) {
    expect(shortcut(press("KeyN", held))).toBeNull();
  }
});
