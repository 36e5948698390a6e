// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { Boundary } from "../../src/shell/boundary";

function Part({ sound }: { sound: boolean }) {
  if (!sound) throw new Error("broken");
  return <p>Here</p>;
}

test("what cannot be drawn leaves a sentence, and neither its neighbours nor what comes after it", () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => {});
  const root = document.body.appendChild(document.createElement("div"));
  const draw = (about: number, sound: boolean) =>
    act(() =>
      render(
        <>
          <p>Beside it</p>
          <Boundary about={about}>
            <Part sound={sound} />
          </Boundary>
        </>,
        root,
      ),
    );
  draw(1, true);
  expect(root.textContent).toBe("Beside itHere");
  draw(1, false);
  expect(root.querySelector("[role=alert]")?.textContent).toMatch(/Reload the page/);
  expect(root.textContent).toMatch(/^Beside it/);
  expect(said).toHaveBeenCalledOnce();
  draw(1, true);
  expect(root.textContent).toMatch(/Reload the page/);
  draw(2, true);
  expect(root.textContent).toBe("Beside itHere");
});
