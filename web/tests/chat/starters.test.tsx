// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { STARTERS, Starters } from "../../src/chat/starters";

test("each prompt that is offered is asked as it says", () => {
  const asked: string[] = [];
  const root = document.createElement("div");
  act(() => render(<Starters ask={(text) => asked.push(text)} />, root));
  for (const button of root.querySelectorAll("button")) button.click();
  expect(asked).toEqual(STARTERS.map(({ text }) => text));
});
