// What the model thought on its way to an answer: in sight while nothing else is, folded up once the answer begins.

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Turn } from "./turns";

/** tick: changes once per frame in which the thoughts may have grown. */
export function Thoughts({ turn, tick }: { turn: Turn; tick: Signal<number> }) {
  if (turn.state === "running") tick.value; // drawn again with every frame, until it is over
  const [chosen, choose] = useState<boolean | null>(null); // by the person, whose word counts from then on
  const root = useRef<HTMLDivElement>(null);
  const drawn = useRef(0); // characters
  const open = chosen ?? turn.text === "";
  useLayoutEffect(() => {
    if (!root.current || !open) return; // what is folded up costs nothing
    extend(root.current, turn.thoughts.slice(drawn.current));
    drawn.current = turn.thoughts.length;
  });
  if (turn.thoughts === "") return null;
  const thinking = turn.state === "running" && turn.text === "";
  return (
    <details
      class="thoughts"
      open={open}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open !== open) choose(currentTarget.open);
      }}
    >
      <summary>{thinking ? "Thinking" : "Thoughts"}</summary>
      <div class="thoughts-text" ref={root} />
    </details>
  );
}

/** A paragraph for each line, so that a long text is not laid out anew with each word. */
function extend(root: HTMLElement, text: string): void {
  const fresh = root.firstChild ? text : text.replace(/^\s+/, "");
  if (fresh === "") return;
  for (const [place, line] of fresh.split("\n").entries()) {
    const last = root.lastElementChild;
    const paragraph = place === 0 && last ? last : root.appendChild(document.createElement("p"));
    if (paragraph.firstChild instanceof Text) paragraph.firstChild.appendData(line);
    else if (line !== "") paragraph.append(line);
  }
}
