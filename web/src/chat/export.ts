// A conversation as a file to take along.

import type { Exported } from "../shell/browser";
import { titleOf } from "./cabinet";
import type { KeptTurn } from "./turns";

const NAMES = { user: "You", assistant: "Model" } as const;

function fileName(title: string, ending: string): string {
  const plain = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${plain || "conversation"}.${ending}`;
}

function quoted(thoughts: string): string {
  return `> *Thoughts*\n>\n${thoughts.trim().replace(/^/gm, "> ")}\n\n`;
}

/** For people. The turns' own Markdown stays as it is, below a heading each, and below what the model thought. */
export function markdownFile(title: string | null, turns: KeptTurn[]): Exported {
  const name = titleOf({ title, turns });
  const parts = turns.map(({ role, text, thoughts, note }) => {
    const said = `${thoughts ? quoted(thoughts) : ""}${text}`;
    return `## ${NAMES[role]}\n\n${said}${note ? `\n\n*${note}*` : ""}\n`;
  });
  return { name: fileName(name, "md"), type: "text/markdown", content: [`# ${name}\n`, ...parts].join("\n") };
}

/** For programs: `messages` is what a chat API takes. */
export function jsonFile(title: string | null, turns: KeptTurn[], instructions: string, model: string): Exported {
  const name = titleOf({ title, turns });
  const system = instructions ? [{ role: "system", content: instructions }] : [];
  const said = turns.flatMap(({ role, text, unread }) => (unread ? [] : [{ role, content: text }]));
  const notes = turns.map(({ state, note, thoughts }) => ({ state, note, thoughts })); // no API takes thoughts back
  const content = JSON.stringify({ title: name, model, messages: [...system, ...said], turns: notes }, null, 2);
  return { name: fileName(name, "json"), type: "application/json", content: `${content}\n` };
}
