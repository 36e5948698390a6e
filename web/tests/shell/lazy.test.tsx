// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Lazy } from "../../src/shell/lazy";

const root = document.createElement("div");
type Module = { default: () => string };

/** A view whose code comes, or fails to, when the test says so. */
function opened() {
  let give: (module: Module) => void = () => {};
  let fail: (why: Error) => void = () => {};
  const coming = new Promise<Module>((resolve, reject) => {
    give = resolve;
    fail = reject;
  });
  const load = () => coming;
  act(() => render(<Lazy load={load} props={{}} />, root));
  return { give: () => give({ default: () => "The view" }), fail: () => fail(new Error("away")) };
}

const after = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms).then(() => undefined));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  act(() => render(null, root));
  vi.useRealTimers();
});

test("a view that comes at once is shown without a word before", async () => {
  const view = opened();
  await after(100);
  expect(root.textContent).toBe("");
  view.give();
  await after(0);
  expect(root.textContent).toBe("The view");
  await after(1000);
  expect(root.textContent).toBe("The view");
});

test("one that takes a while says so", async () => {
  const view = opened();
  await after(500);
  expect(root.textContent).toBe("Loading …");
  view.give();
  await after(0);
  expect(root.textContent).toBe("The view");
});

test("one that does not come says what to do", async () => {
  const view = opened();
  await after(500);
  view.fail();
  await after(0);
  expect(root.querySelector("[role=alert]")?.textContent).toMatch(/reload/);
});
