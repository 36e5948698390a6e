// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from "vitest";
import { TokenList } from "../../src/spec/list";
import { Trace } from "../../src/spec/trace";
import type { Step } from "../../src/wire/events";
import { demo } from "./demo";

let root: HTMLElement;

beforeEach(() => {
  document.body.innerHTML = '<div role="listbox" id="root"></div>';
  root = document.getElementById("root") as HTMLElement;
});

function shown(steps: number) {
  const reply = demo({ nodes: 6 });
  const trace = new Trace(0);
  const list = new TokenList(root);
  const more = (count: number, marked: number | null = null) => {
    for (let step = 0; step < count; step += 1) {
      const { text, spec } = reply.next().value;
      trace.push(text, spec, 0);
    }
    list.update(trace, marked);
  };
  more(steps);
  return { trace, list, more };
}

const stops = () => [...root.querySelectorAll('[tabindex="0"]')];
const texts = () => root.textContent;

describe("TokenList", () => {
  it("shows the tokens as the trace has them, with the class of their origin", () => {
    const { trace, list } = shown(30);
    expect(texts()).toBe(trace.tokens.map(({ text }) => text).join(""));
    expect(root.querySelectorAll("[role=option]")).toHaveLength(trace.tokens.length);
    trace.tokens.forEach(({ source }, index) => {
      const first = source?.split("+")[0];
      expect(list.element(index)?.className).toContain(`spec-${first === "" ? "model" : first}`);
    });
  });

  it("keeps the elements it has and adds the new", () => {
    const { more } = shown(5);
    const first = root.querySelector("[role=option]");
    const before = root.querySelectorAll("[role=option]").length;
    more(1);
    expect(root.querySelector("[role=option]")).toBe(first);
    expect(root.querySelectorAll("[role=option]").length).toBeGreaterThan(before);
  });

  it("drops what the trace drops, empty blocks too, and stays one tab stop", () => {
    const { trace, list, more } = shown(10);
    list.focus(3);
    while (trace.droppedTokens === 0) more(20);
    expect(texts()).toBe(trace.tokens.map(({ text }) => text).join(""));
    expect([...root.children].every((block) => block.childElementCount > 0)).toBe(true);
    expect(stops()).toEqual([list.element(trace.droppedTokens)]);
    expect(document.activeElement).toBe(list.element(trace.droppedTokens));
  });

  it("ends a block only where a line ends", () => {
    shown(200);
    expect(root.children.length).toBeGreaterThan(1);
    for (const block of [...root.children].slice(0, -1)) expect(block.textContent?.endsWith("\n")).toBe(true);
  });

  it("marks the tokens of one step, and of that alone", () => {
    const { trace, list, more } = shown(20);
    const marked = () => [...root.querySelectorAll('[aria-selected="true"]')].map((span) => list.indexOf(span));
    const ofStep = (step: number) => trace.tokens.flatMap((token, index) => (token.step === step ? [index] : []));
    list.update(trace, 19);
    expect(marked()).toEqual(ofStep(19));
    more(5, 7);
    expect(marked()).toEqual(ofStep(7));
    list.update(trace, null);
    expect(marked()).toEqual([]);
  });

  it("moves the focus by keys and stays within the tokens", () => {
    const { trace, list } = shown(10);
    const last = trace.tokens.length - 1;
    const at = (key: string) => [list.key(key), list.indexOf(document.activeElement)];
    list.focus(0);
    expect(at("ArrowLeft")).toEqual([true, 0]);
    expect(at("ArrowRight")).toEqual([true, 1]);
    expect(at("End")).toEqual([true, last]);
    expect(at("ArrowRight")).toEqual([true, last]);
    expect(at("Home")).toEqual([true, 0]);
    expect(at("x")).toEqual([false, 0]);
    expect(stops()).toEqual([list.element(0)]);
  });

  it("takes hostile text as text", () => {
    const trace = new Trace(0);
    const text = '<img src=x onerror="alert(1)">';
    const step: Step = {
      ...{ ms: 1, nodes: 1, drafted: 0, accepted: 0, emitted: 1, reason: null, tree: null },
      tokens: [{ text, source: '"><b>' }],
    };
    trace.push(text, { drafted: 0, accepted: 0, emitted: 1, steps: [step], spans: [[text.length, '"><b>']] }, 0);
    new TokenList(root).update(trace, null);
    expect(texts()).toBe(text);
    expect(root.querySelector("img, b")).toBeNull();
  });
});
