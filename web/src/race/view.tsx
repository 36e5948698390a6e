import type { ViewProps } from "../shell/view";

export default function View(_: ViewProps) {
  return <main />;
}
