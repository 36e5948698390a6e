// The text of a turn of the model's, which grows.

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { MarkdownStream } from "../markdown/stream";
import type { Turn } from "./turns";

/** tick: changes once per frame in which the text may have grown. */
export function ReplyText({ turn, tick }: { turn: Turn; tick: Signal<number> }) {
  if (turn.state === "running") tick.value; // drawn again with every frame, until it is over
  const root = useRef<HTMLDivElement>(null);
  const drawn = useRef<{ stream: MarkdownStream; length: number; over: boolean } | null>(null);
  useLayoutEffect(() => {
    if (!root.current) return;
    drawn.current ??= { stream: new MarkdownStream(root.current), length: 0, over: false };
    const now = drawn.current;
    if (turn.text.length > now.length) now.stream.push(turn.text.slice(now.length));
    now.length = turn.text.length;
    if (turn.state !== "running" && !now.over) {
      now.over = true;
      now.stream.finish();
    }
  });
  useLayoutEffect(() => () => drawn.current?.stream.end(), []);
  return <div class="text" ref={root} />;
}
