// The speed of the reply at a glance, and the switch that changes it and never the text.

import type { Signal } from "@preact/signals";
import type { FormValues } from "../settings/parse";
import { Switch } from "../shell/switch";
import { FigureList, type FigureName } from "../spec/told";
import type { Room } from "./room";

const SHOWN: readonly FigureName[] = ["ttft", "tpot", "rate", "per-step", "acceptance", "cache-hit", "tokens"];

export function FigureStrip({ room, settings }: { room: Room; settings: Signal<FormValues> }) {
  room.shape.value;
  room.frames.tick.value;
  return (
    <section id="figures" aria-label="Figures of the reply">
      <FigureList figures={room.shown?.trace?.figures ?? null} which={SHOWN} ids />
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
