// The speed of the reply at a glance, and the switch that changes it and never the text.

import type { Signal } from "@preact/signals";
import type { FormValues } from "../settings/parse";
import { FigureList, type FigureName } from "../spec/told";
import type { Room } from "./room";

const SHOWN: readonly FigureName[] = ["ttft", "tpot", "rate", "per-step", "acceptance", "cache-hit", "tokens"];

export function FigureStrip({ room, settings }: { room: Room; settings: Signal<FormValues> }) {
  room.shape.value;
  room.frames.tick.value;
  return (
    <section id="figures" aria-label="Figures of the reply">
      <FigureList figures={room.shown?.trace?.figures ?? null} which={SHOWN} ids />
      <label class="check">
        <input
          id="speculation"
          type="checkbox"
          // biome-ignore lint/a11y/useAriaPropsForRole: a checkbox tells its state itself
          role="switch"
          checked={settings.value.speculation}
          onChange={(event) => {
            settings.value = { ...settings.value, speculation: event.currentTarget.checked };
          }}
        />{" "}
        Speculation
      </label>
    </section>
  );
}
