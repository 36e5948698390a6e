// The speed of the reply at a glance, and the switch that changes it and never the text.

import type { Signal } from "@preact/signals";
import type { FormValues } from "../settings/parse";
import { Switch } from "../shell/switch";
import { FigureList, type FigureName } from "../spec/told";
import type { Room } from "./room";

const SHOWN: readonly FigureName[] = ["ttft", "tpot", "rate", "per-step", "acceptance", "cache-hit", "tokens"];

export interface FigureStripProps {
  room: Room;
  settings: Signal<FormValues>;
  /** A button that was pressed goes. */
  refocus(): void;
}

export function FigureStrip({ room, settings, refocus }: FigureStripProps) {
  room.shape.value;
  room.frames.tick.value;
  const { shown } = room;
  const figures = shown?.trace?.figures;
  const older = shown !== null && shown !== room.conversation.turns.findLast(({ role }) => role === "assistant");
  return (
    <section id="figures" aria-label="Figures of the reply">
      {older && (
        <p class="chat-whose">
          <span>Of an earlier reply</span>
          <button
            type="button"
            onClick={() => {
              room.looked.value = null;
              refocus();
            }}
          >
            To the newest
          </button>
        </p>
      )}
      {figures && <FigureList figures={figures} which={SHOWN} ids />}
      <Switch
        id="speculation"
        on={settings.value.speculation}
        change={(speculation) => {
          settings.value = { ...settings.value, speculation };
        }}
      >
        Speculation
      </Switch>
    </section>
  );
}
