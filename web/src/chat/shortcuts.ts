// Keys for what is done often. Alt and Shift together: browsers and screen readers leave these letters alone.

export type Action = "new" | "list" | "settings" | "steps" | "compose" | "help";

interface Shortcut {
  /** KeyboardEvent.code, which stays the same where Alt makes other characters. */
  code: string;
  action: Action;
  keys: readonly string[];
  what: string;
}

const held = (letter: string) => ["Alt", "Shift", letter] as const;

export const SHORTCUTS: readonly Shortcut[] = [
  { code: "KeyN", action: "new", keys: held("N"), what: "starts a new conversation" },
  { code: "KeyL", action: "list", keys: held("L"), what: "shows or hides the conversations" },
  { code: "KeyS", action: "settings", keys: held("S"), what: "shows or hides the settings" },
  { code: "KeyP", action: "steps", keys: held("P"), what: "shows or hides the steps of the reply" },
  { code: "KeyM", action: "compose", keys: held("M"), what: "goes to the message field" },
  { code: "KeyK", action: "help", keys: held("K"), what: "shows these keys" },
];

/** Keys that belong to one place, for the help. */
export const PLACED: readonly { keys: readonly string[]; what: string }[] = [
  { keys: ["Enter"], what: "sends the message" },
  { keys: ["Shift", "Enter"], what: "starts a new line" },
  { keys: ["Esc"], what: "stops a reply, or leaves an edit" },
  { keys: ["Up"], what: "edits your last turn, from an empty message field" },
];

export type Pressed = Pick<KeyboardEvent, "code" | "altKey" | "shiftKey" | "ctrlKey" | "metaKey" | "isComposing">;

/** What a key press anywhere on the page asks for; null: nothing of ours. */
export function shortcut({ code, altKey, shiftKey, ctrlKey, metaKey, isComposing }: Pressed): Action | null {
  if (!altKey || !shiftKey || ctrlKey || metaKey || isComposing) return null;
  return SHORTCUTS.find((known) => known.code === code)?.action ?? null;
}
