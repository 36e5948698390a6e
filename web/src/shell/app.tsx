// The frame around the views. The chat and an opened race stay mounted, since their replies run on while another view is
// looked at; the others begin when they are opened and end when they are left.

import "../styles/frame.css";
import { useMemo } from "preact/hooks";
import { Chat } from "../chat/view";
import { Boundary } from "./boundary";
import { Lazy } from "./lazy";
import { routeSignal } from "./route";
import type { View, ViewProps } from "./view";

const VIEWS = { chat: "Chat", race: "Race", dashboard: "Dashboard", voice: "Voice" } as const;
type Name = keyof typeof VIEWS;
const NAMES = Object.keys(VIEWS) as Name[];

interface Opened {
  name: Name;
  load(): Promise<{ default: View }>;
  /** Once opened, it is hidden when it is left, and does not end. */
  stays: boolean;
}

const OPENED: readonly Opened[] = [
  { name: "race", load: () => import("../race/view"), stays: true },
  { name: "dashboard", load: () => import("../dashboard/view"), stays: false },
  { name: "voice", load: () => import("../voice/view"), stays: false },
];

export function App(props: Omit<ViewProps, "shown">) {
  const route = useMemo(() => routeSignal(NAMES, "chat"), []);
  const seen = useMemo(() => new Set<Name>(), []);
  const shown = route.value;
  seen.add(shown);
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
      {OPENED.filter(({ name, stays }) => name === shown || (stays && seen.has(name))).map(({ name, load }) => (
        <div class="view" key={name} hidden={name !== shown}>
          <Boundary>
            <Lazy load={load} props={{ ...props, shown: name === shown }} />
          </Boundary>
        </div>
      ))}
    </>
  );
}
