// @vitest-environment jsdom
import { createRef, render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { Scrolling } from "../../src/shell/scrolling";

test("what scrolls is reached and named, and hears keys", () => {
  const root = document.createElement("div");
  const box = createRef<HTMLElement>();
  const pressed = vi.fn();
  act(() =>
    render(
      <Scrolling class="wide" label="Table of the races" box={box} onKeyDown={pressed}>
        <table />
      </Scrolling>,
      root,
    ),
  );
  expect(box.current).toBe(root.querySelector("section.wide[aria-label='Table of the races']"));
  expect(box.current?.tabIndex).toBe(0);
  box.current?.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
  expect(pressed).toHaveBeenCalledOnce();
});
