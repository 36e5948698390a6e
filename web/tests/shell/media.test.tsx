// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { LITTLE_MOTION, useMedia } from "../../src/shell/media";
import { Screen } from "./screen";

afterEach(() => vi.unstubAllGlobals());

test("what the system asks for is followed as it changes", () => {
  const screen = new Screen();
  const root = document.createElement("div");
  const Told = () => <p>{useMedia(LITTLE_MOTION) ? "little" : "much"}</p>;
  act(() => render(<Told />, root));
  expect(root.textContent).toBe("much");
  act(() => screen.become(true));
  expect(root.textContent).toBe("little");
  act(() => render(null, root));
  screen.become(false); // nobody listens any more
});
