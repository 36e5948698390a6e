// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { RaceFields } from "../../src/race/form";
import { firstForm } from "../../src/race/plan";
import { Room } from "../../src/race/room";
import type { FormValues } from "../../src/settings/parse";
import { Server } from "../../src/wire/server";

const SETTINGS = { instructions: "", temperature: "0.2", seed: "5", maxTokens: "", topP: "", topK: "" };
const settings = { ...SETTINGS, minP: "", repetitionPenalty: "", speculation: true } satisfies FormValues;

test("a race folds the form, which still says what is chosen; what is wrong unfolds it", () => {
  const root = document.body.appendChild(document.createElement("div"));
  const link = { renew: () => {}, close: () => {}, expect: () => {} };
  const server = Object.assign(new Server("http://127.0.0.1:9/"), { link: () => link });
  const room = new Room(server as unknown as Server);
  const form = signal(firstForm(settings));
  const draw = () => act(() => render(<RaceFields room={room} form={form} settings={settings} />, root));
  const fold = () => root.querySelector<HTMLDetailsElement>(".race-choice");
  const press = () => act(() => root.querySelector<HTMLButtonElement>("#race-start")?.click());
  draw();
  expect(fold()?.open).toBe(true);
  expect(root.querySelector("#race-hint")?.textContent).toMatch(/guesses ahead help most/);
  press();
  expect(fold()?.open).toBe(false);
  expect(fold()?.querySelector("summary")?.textContent).toBe("Edit · seed 5 · 128 tokens · auto");
  press(); // stops it
  form.value = { ...form.value, prompt: "own" };
  draw();
  press();
  expect(fold()?.open).toBe(true);
  expect(document.activeElement?.id).toBe("race-own");
  act(() => render(null, root));
});
