// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeEach, expect, test } from "vitest";
import type { RaceForm } from "../../src/race/plan";
import { Room } from "../../src/race/room";
import { Stage } from "../../src/race/stage";
import type { FormValues } from "../../src/settings/parse";
import type { LinkOptions } from "../../src/wire/link";
import { Server } from "../../src/wire/server";
import { Screen } from "../shell/screen";
import { delta, done, PLAN } from "./fixtures";

const FORM: RaceForm = { prompt: "own", own: PLAN.prompt, seed: "5", limit: "16", mode: "auto", maxNodes: "" };
const SETTINGS = { instructions: "", temperature: "0.2", seed: "", maxTokens: "", topP: "", topK: "" };
const settings = { ...SETTINGS, minP: "", repetitionPenalty: "", speculation: true } satisfies FormValues;

beforeEach(() => {
  new Screen();
  Element.prototype.scrollIntoView = () => {};
});

/** A stage on which a race begins; the test is its server. */
function staged() {
  const root = document.createElement("div");
  const link = { renew: () => {}, close: () => {}, expect: () => {}, send: () => {} };
  let handlers: Pick<LinkOptions, "onState" | "onEvent"> = { onState: () => {}, onEvent: () => {} };
  const server = Object.assign(new Server("http://127.0.0.1:9/"), {
    link: (given: typeof handlers) => {
      handlers = given;
      return link;
    },
  });
  const clock = { now: 0 };
  const room = new Room(server as unknown as Server, () => clock.now);
  const draw = (form: RaceForm) =>
    act(() => render(<Stage room={room} form={form} settings={settings} model={signal("")} />, root));
  draw(FORM);
  act(() => room.start(PLAN));
  return {
    root,
    room,
    draw,
    texts: (selector: string) => [...root.querySelectorAll(selector)].map(({ textContent }) => textContent),
    state: (...news: Parameters<LinkOptions["onState"]>) =>
      act(() => {
        handlers.onState(...news);
        room.frames.now();
      }),
    say: (event: Parameters<LinkOptions["onEvent"]>[0], now: number) =>
      act(() => {
        clock.now = now;
        handlers.onEvent(event);
        room.frames.now();
      }),
  };
}

test("a wait for the server is seen with each try and said once; what ends a race is said", () => {
  const { root, state, texts } = staged();
  state("waiting", "Away; trying again in a moment.");
  state("connecting", "");
  state("waiting", "Away; trying again in 2 seconds.");
  expect(texts(".bar")).toEqual(["Away; trying again in 2 seconds."]);
  expect(texts("[role=status]").join("")).toBe("Away; trying again in a moment.");
  state("locked", "Enter a key.");
  expect(texts("#race-verdict .bar")[0]).toMatch(/^Enter a key\./);
  act(() => render(null, root));
});

test("a race that runs keeps the place of its verdict and of the replay", () => {
  const { root, say, texts } = staged();
  say({ type: "session.created" }, 0);
  expect(texts(".race-undecided")).toHaveLength(1);
  expect(root.querySelector<HTMLFieldSetElement>(".race-playback")?.disabled).toBe(true);
  act(() => render(null, root));
});

test("a result says what was raced, and steps back when the form asks for something else", () => {
  const { root, say, draw, texts } = staged();
  say({ type: "session.created" }, 0);
  say(done(1), 0);
  for (const at of [100, 200]) {
    say(delta("One", { drafted: 0, accepted: 0, emitted: 1 }), at - 50);
    say(done(1), at);
  }
  expect(texts(".race-undecided")).toEqual([]);
  expect(texts(".race-ran")).toEqual(["Raced: Your own · seed 5 · 16 tokens · auto"]);
  expect(texts(".race-changed")).toEqual([""]);
  draw({ ...FORM, prompt: "chat" });
  expect(texts(".race-changed")).toEqual(["The form or the chat’s settings have changed; race again."]);
  expect(root.querySelector(".race-old .race-verdict")).not.toBeNull();
  draw(FORM);
  expect(texts(".race-changed")).toEqual([""]);
  expect(root.querySelector(".race-old")).toBeNull();
  act(() => render(null, root));
});

test("the figures are those of the moment that is looked at, and lines under the text are explained", () => {
  const { root, room, say, texts } = staged();
  say({ type: "session.created" }, 0);
  say(done(1), 0);
  for (const from of [0, 200]) {
    say(delta("One", { drafted: 0, accepted: 0, emitted: 1 }), from + 50);
    say(delta(" two", { drafted: 2, accepted: 1, emitted: 2 }), from + 100);
    say(done(3), from + 200);
  }
  const tokens = () => texts(".race-figures > div:nth-child(3) dd");
  expect(tokens()).toEqual(["3", "3"]);
  act(() => room.seek(60));
  expect(tokens()).toEqual(["1", "1"]);
  act(() => room.seek(0));
  expect(tokens()).toEqual(["–", "–"]);
  expect(texts(".race-stage > p").join(" ")).toContain("Underlined: several tokens from one step");
  act(() => render(null, root));
});
