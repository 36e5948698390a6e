// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { Field } from "../../src/chat/field";

test("what is wrong is told once the field is left, and not while it is written", () => {
  const root = document.body.appendChild(document.createElement("div"));
  const draw = (value: string, problem = "") => {
    const spec = {
      name: "temperature",
      id: "t",
      label: "Temperature",
      mode: "decimal",
      empty: "",
      help: "Heat.",
    } as const;
    act(() => render(<Field {...spec} {...{ value, problem }} set={() => {}} field={() => {}} />, root));
    return [root.querySelector("input")?.ariaInvalid, root.querySelector("#t-problem")?.textContent];
  };
  const leave = () =>
    act(() => {
      root.querySelector("input")?.dispatchEvent(new FocusEvent("blur"));
    });
  expect(draw("9")).toEqual(["false", ""]);
  leave();
  expect(draw("9")).toEqual(["true", "The temperature must be a number from 0 to 2; change it or leave it empty."]);
  expect(draw("9.")).toEqual(["false", ""]);
  expect(draw("1")).toEqual(["false", ""]);
  leave();
  expect(draw("1")).toEqual(["false", ""]);
  expect(draw("1", "It is refused.")).toEqual(["true", "It is refused."]);
  expect(root.querySelector("input")?.getAttribute("aria-describedby")).toBe("t-help t-problem");
});
