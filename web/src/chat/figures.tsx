// The speed of the reply at a glance, and the switch that changes it and never the text.

import type { Signal } from "@preact/signals";
import type { FormValues } from "../settings/parse";
import { decimal, milliseconds, percent } from "../shell/format";
import { Switch } from "../shell/switch";
import type { Room } from "./room";

function shown(room: Room): [id: string, name: string, long: string, value: string][] {
  const figures = room.shown?.trace?.figures;
  const drafted = figures?.drafted ?? 0;
  const share = percent(figures?.acceptance ?? null);
  return [
    ["ttft", "TTFT", "time to first token", milliseconds(figures?.ttft ?? null)],
    ["tpot", "TPOT", "time per output token after the first", milliseconds(figures?.tpot ?? null)],
    ["rate", "Tokens/s", "", decimal(figures?.rate ?? null)],
    ["per-step", "Tokens per step", "", decimal(figures?.perStep ?? null)],
    ["acceptance", "Guesses accepted", "", drafted > 0 ? `${share} of ${drafted}` : share],
    ["tokens", "Tokens", "", figures && figures.tokens > 0 ? String(figures.tokens) : "–"],
  ];
}

export function FigureStrip({ room, settings }: { room: Room; settings: Signal<FormValues> }) {
  room.shape.value;
  room.frames.tick.value;
  return (
    <section id="figures" aria-label="Figures of the reply">
      <dl>
        {shown(room).map(([id, name, long, value]) => (
          <div key={id}>
            <dt>{long ? <abbr title={long}>{name}</abbr> : name}</dt>
            <dd id={id}>{value}</dd>
          </div>
        ))}
      </dl>
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
