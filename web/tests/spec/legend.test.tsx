// @vitest-environment jsdom

import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { Legend } from "../../src/spec/legend";
import { Trace } from "../../src/spec/trace";

it("explains what the reply has, and keeps up with it while it is open", () => {
  const root = document.createElement("div");
  const trace = new Trace(0);
  const slow = signal(0);
  act(() => render(<Legend trace={trace} slow={slow} figures={["ttft"]} />, root));
  const details = root.querySelector("details") as HTMLDetailsElement;
  expect(root.querySelector("dl")).toBeNull();
  act(() => {
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
  });
  const names = () => [...root.querySelectorAll("dt")].map(({ textContent }) => textContent);
  expect(names()).toEqual(["Tree", "Strip", "Figures", "Tables"]);
  expect(root.textContent).toContain("TTFT: time to first token.");
  const step = { ms: 1, nodes: 1, drafted: 0, accepted: 0, emitted: 1, reason: "prefill", tree: null };
  const tokens = [{ text: "Hi", source: "" }];
  act(() => {
    trace.push("Hi", { drafted: 0, accepted: 0, emitted: 1, steps: [{ ...step, tokens }], spans: [[2, ""]] }, 1);
    slow.value += 1;
  });
  expect(names()).toContain("Origins");
  expect(root.textContent).toContain("P is prefill: this step read the prompt");
  expect(root.textContent).toContain("the model itself: no guess was accepted there.");
});
