// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { Switch } from "../../src/shell/switch";

test("a switch has a name, tells its state and says what it becomes", () => {
  const root = document.createElement("div");
  document.body.append(root);
  const change = vi.fn();
  act(() =>
    render(
      <Switch id="one" on={false} change={change}>
        Speculation
      </Switch>,
      root,
    ),
  );
  const box = root.querySelector<HTMLInputElement>("#one[role=switch]");
  expect([box?.checked, box?.labels?.[0]?.textContent?.trim()]).toEqual([false, "Speculation"]);
  box?.click();
  expect(change).toHaveBeenCalledExactlyOnceWith(true);
  root.remove();
});
