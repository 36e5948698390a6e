// The frame around the views. The chat begins with the page, the others when they are opened; one that is left is hidden,
// and what was said, raced or measured there is there again.

import "./styles/frame.css";
import { useMemo } from "preact/hooks";
import { Chat } from "./chat/view";
import { Boundary } from "./shell/boundary";
import { Lazy } from "./shell/lazy";
import { routeSignal } from "./shell/route";
import type { View, ViewProps } from "./shell/view";

const VIEWS = { chat: "Chat", race: "Race", dashboard: "Dashboard", voice: "Voice" } as const;
type Name = keyof typeof VIEWS;
const NAMES = Object.keys(VIEWS) as Name[];

interface Opened {
  name: Name;
  load(): Promise<{ default: View }>;
}

const OPENED: readonly Opened[] = [
  { name: "race", load: () => import("./race/view") },
  { name: "dashboard", load: () => import("./dashboard/view") },
  { name: "voice", load: () => import("./voice/view") },
];

export function App(props: Omit<ViewProps, "shown">) {
  const route = useMemo(() => routeSignal(VIEWS, "chat"), []);
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
          <Chat {...props} shown={shown === "chat"} />
        </Boundary>
      </div>
      {OPENED.filter(({ name }) => seen.has(name)).map(({ name, load }) => (
        <div class="view" key={name} hidden={name !== shown}>
          <Boundary>
            <Lazy load={load} props={{ ...props, shown: name === shown }} />
          </Boundary>
        </div>
      ))}
    </>
  );
}
