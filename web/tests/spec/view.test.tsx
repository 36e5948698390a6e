// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { reasonsOf } from "../../src/spec/strip";
import { Trace } from "../../src/spec/trace";
import type { StepToken } from "../../src/spec/tree";
import { SpeculationView } from "../../src/spec/view";
import type { Step } from "../../src/wire/events";
import { demo, tokensOf } from "./demo";

const PLAIN: Step = {
  ...{ ms: 5, nodes: 1, drafted: 0, accepted: 0, emitted: 1, reason: "off" },
  tokens: [{ text: "Hi", source: "" }],
  tree: { texts: ["?"], parents: [-1], sources: [""], estimates: [1], chances: [1], path: [0] },
};

let root: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  root = document.body.appendChild(document.createElement("div"));
});

afterEach(() => {
  act(() => render(null, root));
  root.remove();
  vi.useRealTimers();
});

function shown(steps: number, trace = new Trace(0)) {
  const reply = demo({ nodes: 8 });
  const tick = signal(0);
  const more = (count: number) =>
    act(() => {
      for (let step = 0; step < count; step += 1) {
        const { text, spec } = reply.next().value;
        trace.push(text, spec, step);
      }
      tick.value += 1;
    });
  act(() => render(<SpeculationView trace={trace} tick={tick} />, root));
  if (steps > 0) more(steps);
  for (let part = 0; part < 4; part += 1) act(() => void vi.advanceTimersByTime(200)); // they come one after the other
  return { trace, tick, more };
}

const one = <Kind extends HTMLElement>(selector: string) => root.querySelector(selector) as Kind;
const press = (element: Element, key: string) =>
  act(() => {
    element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  });
const drawnStep = () => Number(one(".spec-tree").dataset.step);

describe("SpeculationView", () => {
  it("says what will be seen while there is no reply, and while it has not begun", () => {
    act(() => render(<SpeculationView trace={null} tick={signal(0)} />, root));
    expect(one(".spec-empty").textContent).toContain("Ask something");
    act(() => render(<SpeculationView trace={null} forgotten tick={signal(0)} />, root));
    expect(one(".spec-empty").textContent).toContain("before this page was loaded, or to another tab, are not kept");
    shown(0);
    expect(one(".spec-empty").textContent).toContain("No step has come yet");
    const lost = new Trace(null);
    lost.close();
    shown(0, lost);
    expect(one(".spec-empty").textContent).toContain("ask again");
  });

  it("says that speculation is off, and that a server tells no steps", () => {
    const off = new Trace(0);
    off.push("Hi", { drafted: 0, accepted: 0, emitted: 1, steps: [PLAIN], spans: [[2, ""]] }, 5);
    shown(0, off);
    expect(one(".spec-empty").textContent).toContain("Speculation is off");
    const silent = new Trace(0);
    silent.push("Hi", { drafted: 0, accepted: 0, emitted: 1 }, 5);
    shown(0, silent);
    expect(one(".spec-empty").textContent).toContain("tells no steps");
    expect(one(".spec-tokens .spec-unknown").textContent).toBe("Hi");
  });

  it("draws the newest step's tree, node for node, live", () => {
    const { trace, more } = shown(3);
    for (let turn = 0; turn < 5; turn += 1) {
      more(1);
      const step = trace.steps.at(-1) as Step;
      const tree = step.tree as NonNullable<Step["tree"]>;
      expect(drawnStep()).toBe(trace.steps.length - 1);
      const nodes = [...root.querySelectorAll<SVGGElement>("[data-node]")].filter(
        ({ dataset }) => dataset.node !== "own",
      );
      expect(nodes.map(({ dataset }) => dataset.source)).toEqual(tree.sources);
      const accepted = nodes
        .filter(({ dataset }) => dataset.accepted === "true")
        .map(({ dataset }) => Number(dataset.node));
      expect(accepted.sort((a, b) => a - b)).toEqual([...tree.path].sort((a, b) => a - b));
      expect(tokensOf({ ...tree, path: accepted }, step.tokens.at(-1) as StepToken)).toEqual(step.tokens);
      expect(one('[data-node="own"] .spec-word').textContent?.length).toBeGreaterThan(0);
    }
  });

  it("begins with the tree, the strip and the step's sentence, before the tokens, figures and what is for tuning", () => {
    shown(3);
    const parts = [
      ...root.querySelectorAll(".spec-tree, .spec-bars, .spec-readout, .spec-tokens, .spec-figures, .spec-tables"),
    ];
    expect(parts.map((part) => part.classList[0])).toEqual(
      ["tree", "bars", "readout", "tokens", "figures", "tables"].map((name) => `spec-${name}`),
    );
  });

  it("says what marks, letters, figures, columns and origins are in one place, once it is opened", () => {
    const { trace } = shown(40);
    expect(root.querySelector(".spec-key")).toBeNull();
    act(() => {
      one<HTMLDetailsElement>(".spec-head details").open = true;
      one(".spec-head details").dispatchEvent(new Event("toggle"));
    });
    const keys = one(".spec-key").textContent;
    for (const { letter, name } of reasonsOf(trace.steps)) expect(keys).toContain(`${letter} is ${name}: `);
    for (const told of ["TTFT: time to first token", "TPOT: time per output token", "estimate is", "chance what"]) {
      expect(keys).toContain(told);
    }
    expect(keys).toContain("suffix: repeats");
    expect(trace.tally.tokens.has("")).toBe(true);
    expect(keys).toContain("the model itself: no guess was accepted there");
    expect(root.querySelector("[title]")).toBeNull();
  });

  it("holds a step by button and goes on following by button", () => {
    const { more } = shown(10);
    act(() => one(".spec-hold").click());
    more(5);
    expect(drawnStep()).toBe(9);
    expect(one(".spec-hold").textContent).toBe("Follow");
    act(() => one('[aria-label="Step before"]').click());
    expect(drawnStep()).toBe(8);
    act(() => one(".spec-hold").click());
    expect(drawnStep()).toBe(14);
  });

  it("goes from step to step by keys, on the strip and on the tree, and tells the strip's value", () => {
    const { trace } = shown(10);
    const strip = one("[role=slider]");
    expect(strip.getAttribute("aria-valuetext")).toBe("The newest step is followed");
    press(strip, "ArrowLeft");
    expect(strip.getAttribute("aria-valuenow")).toBe("9");
    expect(strip.getAttribute("aria-valuetext")).toContain(`Step 9: `);
    press(one(".spec-box"), "ArrowLeft");
    expect(drawnStep()).toBe(7);
    expect(one(".spec-readout").textContent).toContain(`${trace.step(7)?.emitted} token`);
    press(strip, "End");
    expect(drawnStep()).toBe(9);
  });

  it("says what the strip's heights are and how a step is chosen, and marks the one that is pointed at", () => {
    const { trace } = shown(10);
    expect(one(".spec-hint").textContent).toBe("Click a step, or use the arrow keys.");
    const most = Math.max(...trace.steps.map(({ nodes }) => nodes));
    const labels = [...root.querySelectorAll(".spec-axis text")].map(({ textContent }) => textContent);
    expect(labels).toEqual([expect.stringMatching(/^[\d.]+ ms$/), `${most} nodes`, "0", "reason"]);
    expect(root.querySelector(".spec-over")).toBeNull();
    act(() => {
      one("[role=slider]").dispatchEvent(new MouseEvent("pointermove", { clientX: 70, bubbles: true }));
    });
    expect(one(".spec-over").getAttribute("x")).toBe("64");
    expect(one(".spec-readout").textContent).toContain("Step 3: ");
  });

  it("holds the step that brought the most by button", () => {
    const { trace } = shown(40);
    act(() => one<HTMLButtonElement>(".spec-buttons button:last-child").click());
    const brought = trace.steps.map(({ emitted }) => emitted);
    expect(drawnStep()).toBe(brought.indexOf(Math.max(...brought)));
  });

  it("shows whose guesses stood at a focused token, and its tree on Enter", () => {
    const { trace } = shown(10);
    const index = trace.tokens.findIndex(({ node }) => node !== null);
    const { step, node } = trace.tokens[index] as { step: number; node: number };
    const token = root.querySelectorAll<HTMLElement>(".spec-tokens .spec-token")[index] as HTMLElement;
    act(() => token.focus());
    const card = one("[role=tooltip]");
    expect(token.getAttribute("aria-describedby")).toBe(card.id);
    const parent = trace.step(step)?.tree?.parents[node];
    const siblings = trace.step(step)?.tree?.parents.filter((other) => other === parent) ?? [];
    expect(card.querySelectorAll("li")).toHaveLength(siblings.length);
    expect(card.querySelectorAll("li.spec-accepted")).toHaveLength(1);
    press(token, "Enter");
    expect(drawnStep()).toBe(step);
    press(token, "Escape");
    expect(one("[role=tooltip]")).toBeNull();
  });

  it("has the tree as a table", () => {
    const { trace } = shown(10);
    const details = one(".spec-part > details") as HTMLDetailsElement;
    act(() => {
      details.open = true;
      details.dispatchEvent(new Event("toggle"));
    });
    const rows = [...details.querySelectorAll("tbody tr")].map((row) => row.lastElementChild?.textContent);
    const { nodes, accepted } = trace.steps.at(-1) as Step;
    expect(rows).toHaveLength(nodes);
    expect(rows.filter((verdict) => verdict === "accepted")).toHaveLength(accepted);
    expect(rows[0]).toBe("pending token");
  });

  it("marks the guess that the reply ended with, in the drawing, the table and the card", () => {
    const trace = new Trace(0);
    const tree = {
      ...{ texts: ["?", "Hi", "Ho"], parents: [-1, 0, 0], sources: ["", "suffix", "suffix"], path: [0] },
      ...{ estimates: [1, 0.9, 0.1], chances: [1, 0.9, 0.1] },
    };
    const step = { ...PLAIN, reason: "best", nodes: 3, drafted: 2, tree };
    trace.push("Hi", { drafted: 2, accepted: 0, emitted: 1, steps: [step], spans: [[2, ""]] }, 5);
    shown(0, trace);
    const drawn = [...root.querySelectorAll<SVGGElement>("[data-node]")];
    expect(drawn.map(({ dataset }) => dataset.accepted)).toEqual(["true", "false", "false", "true"]);
    expect(drawn.map((node) => node.classList[1])).toEqual(["spec-pending", "spec-met", "spec-rejected", "spec-own"]);
    expect(one('[data-node="1"] .spec-mark')).not.toBeNull();
    const details = one(".spec-part > details") as HTMLDetailsElement;
    act(() => {
      details.open = true;
      details.dispatchEvent(new Event("toggle"));
    });
    const rows = [...details.querySelectorAll("tbody tr")].map((row) => row.lastElementChild?.textContent);
    expect(rows).toEqual(["pending token", "met: the reply ended with it", "rejected"]);
    act(() => one(".spec-tokens .spec-token").focus());
    const guesses = [...one("[role=tooltip]").querySelectorAll("li")];
    expect(guesses.map(({ className }) => className)).toEqual(["spec-met", "spec-rejected"]);
    expect(guesses[0]?.textContent).toContain("= Hi met: the reply ended with it");
  });

  it("says where a step came without its tree", () => {
    const trace = new Trace(0);
    const step = { ...PLAIN, reason: "best", tree: null };
    trace.push("Hi", { drafted: 0, accepted: 0, emitted: 1, steps: [step], spans: [[2, ""]] }, 5);
    shown(0, trace);
    expect(one(".spec-missing").textContent).toContain("1 node, 0 accepted: Hi (the model itself).");
    expect(root.querySelector(".spec-tree")).toBeNull();
  });

  it("bears steps whose texts are no token's: it draws a bounded part of each", () => {
    const trace = new Trace(0);
    const [text, last] = ["x".repeat(50_000), "y".repeat(50_000)];
    const parents = Array.from({ length: 256 }, (_, node) => node - 1);
    const sources = parents.map((parent) => (parent < 0 ? "" : "suffix"));
    const numbers = parents.map(() => 0.5);
    const tree = { texts: parents.map(() => text), parents, sources, estimates: numbers, chances: numbers, path: [0] };
    const tokens = [...parents.slice(2).map(() => ({ text, source: "suffix" })), { text: last, source: "" }];
    const step = { ...PLAIN, nodes: 256, drafted: 255, accepted: 255, emitted: 256, tokens };
    const steps = [{ ...step, tree: { ...tree, path: parents.map((_, node) => node) } }];
    trace.push(text + last, { drafted: 255, accepted: 255, emitted: 256, steps, spans: [[50_000, "suffix"]] }, 5);
    shown(0, trace);
    const details = one(".spec-part > details") as HTMLDetailsElement;
    act(() => {
      details.open = true;
      details.dispatchEvent(new Event("toggle"));
    });
    act(() => one(".spec-tokens .spec-token").focus());
    expect(one("[role=tooltip]").textContent).toContain("xxx…");
    expect(root.innerHTML.length).toBeLessThan(400_000);
  });

  it("counts by drafter and by depth", () => {
    const { trace } = shown(40);
    const [drafters, depths] = [...root.querySelectorAll("table")].map((table) => table.querySelectorAll("tbody tr"));
    expect(drafters).toHaveLength(trace.tally.drafters.size);
    expect(depths).toHaveLength(trace.tally.depths.length);
  });
});
