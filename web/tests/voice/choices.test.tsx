// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { Choices } from "../../src/voice/choices";
import { optionsStore } from "../../src/voice/options";
import type { Room } from "../../src/voice/room";

afterEach(() => vi.restoreAllMocks());

test("languages that are none are not offered, and do not break the view", () => {
  vi.spyOn(navigator, "languages", "get").mockReturnValue(["en-US@posix", "eo"]);
  localStorage.setItem("paceline.voice", JSON.stringify({ language: "<x>" }));
  const room = { options: optionsStore("en-US@posix"), synthesis: null } as unknown as Room;
  const root = document.createElement("div");
  act(() => render(<Choices room={room} />, root));
  const offered = [...root.querySelectorAll("#voice-language option")].map(({ textContent }) => textContent);
  expect(offered.slice(0, 2)).toEqual(["American English", "Esperanto"]);
  expect(offered).not.toContain("<x>");
  act(() => render(null, root));
});
