// @vitest-environment jsdom
import { type Signal, signal } from "@preact/signals";
import { createRef, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useDrawing, useParts, useSlow, useWidth } from "../../src/spec/live";

/** The observer of the element that was given to it last, told by hand. */
class Told {
  static last: Told | null = null;
  readonly #callback: (entries: unknown[]) => void;
  watching = false;

  constructor(callback: (entries: unknown[]) => void) {
    this.#callback = callback;
    Told.last = this;
  }

  observe(): void {
    this.watching = true;
  }

  disconnect(): void {
    this.watching = false;
  }

  tell(...entries: unknown[]): void {
    act(() => this.#callback(entries));
  }
}

// Put back by hand: other tests of the process have stand-ins of their own for all of theirs.
const { IntersectionObserver, ResizeObserver } = globalThis;
let root: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  Object.assign(globalThis, { IntersectionObserver: Told, ResizeObserver: Told });
  root = document.body.appendChild(document.createElement("div"));
});

afterEach(() => {
  act(() => render(null, root));
  root.remove();
  Object.assign(globalThis, { IntersectionObserver, ResizeObserver });
  vi.useRealTimers();
});

function shown(Component: () => preact.JSX.Element) {
  act(() => render(<Component />, root));
}

const pass = (ms: number) => act(() => void vi.advanceTimersByTime(ms));

function up(tick: Signal<number>, times = 1) {
  for (let time = 0; time < times; time += 1) {
    act(() => {
      tick.value += 1;
    });
  }
}

describe("useSlow", () => {
  it("changes at once, then no more often than it may, and never misses the last change", () => {
    const tick = signal(0);
    const seen: number[] = [];
    shown(() => {
      seen.push(useSlow(tick, 200).value);
      return <p />;
    });
    expect(seen.at(-1)).toBe(1); // what was there when it began
    up(tick, 5);
    expect(seen.at(-1)).toBe(1);
    pass(200);
    expect(seen.at(-1)).toBe(2);
    pass(10_000); // nothing new
    expect(seen.at(-1)).toBe(2);
    up(tick);
    expect(seen.at(-1)).toBe(3);
  });

  it("has no timer once its component is gone", () => {
    const tick = signal(0);
    shown(() => <p>{useSlow(tick, 200).value}</p>);
    up(tick);
    act(() => render(null, root));
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("useDrawing", () => {
  it("draws with the tick while it is seen, and once a second while it is not", () => {
    const tick = signal(0);
    let drawn = 0;
    const box = createRef<HTMLParagraphElement>();
    shown(() => {
      useDrawing(box, tick)();
      drawn += 1;
      return <p ref={box} />;
    });
    const draws = (what: () => void) => {
      const before = drawn;
      what();
      return drawn - before;
    };
    expect(draws(() => up(tick))).toBe(1);
    Told.last?.tell({ isIntersecting: true }, { isIntersecting: false });
    pass(1_000);
    up(tick); // at once, since it rested long enough
    expect(draws(() => up(tick, 3))).toBe(0);
    expect(draws(() => pass(1_000))).toBe(1);
    Told.last?.tell({ isIntersecting: true });
    expect(draws(() => up(tick, 3))).toBe(3);
    act(() => render(null, root));
    expect(Told.last?.watching).toBe(false);
  });
});

it("useParts brings one part more with each frame", () => {
  const seen: number[] = [];
  shown(() => {
    seen.push(useParts(3));
    return <p />;
  });
  expect(seen).toEqual([0]);
  for (let frame = 0; frame < 5; frame += 1) pass(20);
  expect(seen).toEqual([0, 1, 2, 3]);
});

it("useWidth follows the element in whole pixels, and keeps the last one while it is hidden", () => {
  const box = createRef<HTMLParagraphElement>();
  const widths: number[] = [];
  shown(() => {
    widths.push(useWidth(box, 600).value);
    return <p ref={box} />;
  });
  Told.last?.tell({ contentRect: { width: 1 } }, { contentRect: { width: 321.9 } });
  Told.last?.tell({ contentRect: { width: 0 } });
  expect(widths).toEqual([600, 321]);
});
