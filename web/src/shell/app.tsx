// The frame around the views. The chat stays mounted, since its reply runs on while another view is looked at; the
// others begin when they are opened and end when they are left.

import { useMemo } from "preact/hooks";
import { Chat } from "../chat/view";
import { Boundary } from "./boundary";
import { Lazy } from "./lazy";
import { routeSignal } from "./route";
import type { View, ViewProps } from "./view";

const VIEWS = { chat: "Chat", race: "Race", dashboard: "Dashboard", voice: "Voice" } as const;
type Name = keyof typeof VIEWS;
const NAMES = Object.keys(VIEWS) as Name[];

const LOADERS: Record<Exclude<Name, "chat">, () => Promise<{ default: View }>> = {
  race: () => import("../race/view"),
  dashboard: () => import("../dashboard/view"),
  voice: () => import("../voice/view"),
};

export function App(props: ViewProps) {
  const route = useMemo(() => routeSignal(NAMES, "chat"), []);
  const shown = route.value;
  return (
    <>
      <header class="frame">
        <img src="./icon.svg" alt="" width={28} height={28} />
        <h1>Paceline</h1>
        <nav aria-label="Views">
          {NAMES.map((name) => (
            <a key={name} href={`#/${name}`} aria-current={name === shown ? "page" : undefined}>
              {VIEWS[name]}
            </a>
          ))}
        </nav>
      </header>
      <div class="view" hidden={shown !== "chat"}>
        <Boundary>
          <Chat {...props} />
        </Boundary>
      </div>
      {shown !== "chat" && (
        <div class="view" key={shown}>
          <Boundary>
            <Lazy load={LOADERS[shown]} props={props} />
          </Boundary>
        </div>
      )}
    </>
  );
}
