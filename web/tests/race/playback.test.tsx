// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { Playback } from "../../src/race/playback";
import { Replay } from "../../src/race/replay";
import { Room } from "../../src/race/room";
import { Server } from "../../src/wire/server";
import { Screen } from "../shell/screen";

afterEach(() => vi.unstubAllGlobals());

test("who asks for little motion while a replay plays is shown its end", () => {
  const screen = new Screen();
  const root = document.createElement("div");
  let now = 0;
  const room = new Room(new Server("http://127.0.0.1:9/"), () => now);
  const replay = new Replay(1000);
  room.replay = replay;
  const draw = () => {
    const { at, playing } = room.moment() ?? { at: 0, playing: false };
    act(() => render(<Playback room={room} replay={replay} at={at} playing={playing} />, root));
  };
  draw();
  room.toggle();
  now = 100;
  draw();
  expect(root.querySelector("#race-play")?.textContent).toBe("Pause");
  act(() => screen.become(true));
  draw();
  expect([root.querySelector("#race-play"), room.moment()]).toEqual([null, { at: 1000, playing: false }]);
  expect(root.textContent).toContain("little motion");
  act(() => render(null, root));
});
