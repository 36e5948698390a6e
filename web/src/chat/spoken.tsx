// What a screen reader is to say: sentences as they come, and a reply once it is over and drawn.

import type { Signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { DRAWING } from "../markdown/stream";
import type { Turn } from "./turns";

/** Of one thing to say. */
export interface Saying {
  /** Counts up, since the same words may be said twice. */
  serial: number;
  text: string;
  /** The reply that is said before the text. */
  reply: Turn | null;
}

const LONGEST = 4_000; // characters of a reply, some minutes of speech; whoever wants the rest reads it at their own pace
const SILENT = "button, [role=status]";
const ENDING = "br, div, h1, h2, h3, h4, h5, h6, hr, li, p, pre, td, th"; // a pause follows

/** Drawn anew only when there is something to say: the same words written again would be a change to a screen reader. */
export function Spoken({ saying }: { saying: Signal<Saying> }) {
  const [said, say] = useState<Omit<Saying, "reply">>(saying.peek());
  useEffect(
    () =>
      saying.subscribe(({ serial, text, reply }) => {
        const drawn = reply && document.querySelector(`#turn-${reply.key} .text`);
        if (drawn) onceDrawn(drawn, () => say({ serial, text: `${shortened(readable(drawn))}\n${text}` }));
        else if (serial !== said.serial) say({ serial, text });
      }),
    [saying],
  );
  return (
    <p id="spoken" class="unseen" role="status" aria-live="polite">
      <span key={said.serial}>{said.text}</span>
    </p>
  );
}

/** The words of what is drawn, without its controls; a line for each block, so that they do not run together. */
export function readable(node: Node): string {
  if (node instanceof Text) return node.data;
  if (!(node instanceof Element) || node.matches(SILENT)) return "";
  const words = Array.from(node.childNodes, readable).join("");
  return node.matches(ENDING) ? `${words.trimEnd()}\n` : words;
}

function shortened(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}… and more in the conversation` : text.trimEnd();
}

function onceDrawn(element: Element, then: () => void): void {
  const look = () => {
    if (element.hasAttribute(DRAWING)) return;
    observer.disconnect();
    if (element.isConnected) then();
  };
  const observer = new MutationObserver(look);
  observer.observe(element, { attributes: true, attributeFilter: [DRAWING] });
  look();
}
