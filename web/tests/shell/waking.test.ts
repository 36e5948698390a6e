// @vitest-environment jsdom
import { expect, test, vi } from "vitest";
import { onWaking } from "../../src/shell/waking";

test("the network's coming and going, and being seen again, are reasons to look", () => {
  const check = vi.fn();
  const visible = vi.spyOn(document, "visibilityState", "get");
  const end = onWaking(check);
  dispatchEvent(new Event("offline"));
  dispatchEvent(new Event("online"));
  expect(check).toHaveBeenCalledTimes(2);
  for (const [state, times] of [
    ["hidden", 2],
    ["visible", 3],
  ] as const) {
    visible.mockReturnValue(state);
    document.dispatchEvent(new Event("visibilitychange"));
    expect(check).toHaveBeenCalledTimes(times);
  }
  end();
  dispatchEvent(new Event("online"));
  document.dispatchEvent(new Event("visibilitychange"));
  expect(check).toHaveBeenCalledTimes(3);
  visible.mockRestore();
});
