// The race: the same reply made twice, plain and speculating, one after the other and then watched side by side.

import "./race.css";
import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import { remembered } from "../settings/store";
import { LITTLE_MOTION } from "../shell/media";
import type { ViewProps } from "../shell/view";
import { RaceFields } from "./form";
import { firstForm, knownForm } from "./plan";
import { Room } from "./room";
import { Stage } from "./stage";

export default function View({ server, settings, shown }: ViewProps) {
  const room = useMemo(() => new Room(server, undefined, watched), [server]);
  const form = useMemo(() => {
    const kept = remembered("race", firstForm(settings.peek()));
    kept.value = knownForm(kept.value);
    return kept;
  }, [settings]);
  const key = server.key.value;
  useEffect(() => void room.learn(), [room, key]); // another key may open what was locked
  useLayoutEffect(() => room.show(shown), [room, shown]);
  useEffect(() => () => room.stop(), [room]);
  return (
    <main class="race">
      <p class="race-lead">
        The same prompt, answered twice with the same seed: once token by token, once speculating. The text must be the
        same; only the time may differ.
      </p>
      <RaceFields room={room} form={form} settings={settings.value} />
      <Stage room={room} form={form.value} settings={settings.value} model={server.model} />
    </main>
  );
}

function watched(): boolean {
  return !document.hidden && !matchMedia(LITTLE_MOTION).matches;
}
