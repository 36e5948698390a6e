// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { Thoughts } from "../../src/chat/thoughts";
import { newReply, type Turn } from "../../src/chat/turns";
import { SETTINGS } from "./talk";

const HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>";

/** A reply with these thoughts, as it is drawn now. */
function drawn(thoughts: string) {
  const turn = Object.assign(newReply(SETTINGS, 0), { thoughts });
  const tick = signal(0);
  const root = document.createElement("div");
  act(() => render(<Thoughts turn={turn} tick={tick} />, root));
  const details = () => root.querySelector("details") as HTMLDetailsElement;
  return {
    root,
    details,
    become: (more: Partial<Turn>) =>
      act(() => {
        Object.assign(turn, more);
        tick.value += 1;
      }),
    /** What a press on the summary does. */
    press: () =>
      act(() => {
        details().open = !details().open;
        details().dispatchEvent(new Event("toggle"));
      }),
    lines: () => [...root.querySelectorAll("p")].map(({ textContent }) => textContent),
  };
}

it("is not there where the model does not think", () => {
  expect(drawn("").root.innerHTML).toBe("");
});

it("grows as plain text, a paragraph for each line", () => {
  const { root, become, lines } = drawn("\nFirst");
  const first = root.querySelector("p")?.firstChild;
  become({ thoughts: "\nFirst, this.\n" });
  become({ thoughts: `\nFirst, this.\n\n${HOSTILE} **x**` });
  expect(lines()).toEqual(["First, this.", "", `${HOSTILE} **x**`]);
  expect(root.querySelector("p")?.firstChild).toBe(first);
  expect(root.querySelector("img, script, strong")).toBeNull();
});

it("is open while nothing else is there, and closed once the answer begins", () => {
  const { root, details, become } = drawn("Hm");
  const name = () => root.querySelector("summary")?.textContent;
  expect([details().open, name()]).toEqual([true, "Thinking"]);
  become({ text: "Hello" });
  expect([details().open, name()]).toEqual([false, "Thoughts"]);
});

it("stays open where it is all that came", () => {
  const { details, become } = drawn("Hm");
  become({ state: "cut" });
  expect(details().open).toBe(true);
});

it("is as the person wants it, and draws what came meanwhile", () => {
  const { details, become, press, lines } = drawn("Hm");
  press();
  become({ thoughts: "Hm, well" });
  expect([details().open, lines()]).toEqual([false, ["Hm"]]);
  press();
  expect([details().open, lines()]).toEqual([true, ["Hm, well"]]);
  become({ text: "Hello" });
  expect(details().open).toBe(true);
});
