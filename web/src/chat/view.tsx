import type { ViewProps } from "../shell/view";

export function Chat(_: ViewProps) {
  return <main />;
}
