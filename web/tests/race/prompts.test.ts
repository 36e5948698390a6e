import { expect, test } from "vitest";
import { hintOf, OWN, SAMPLES } from "../../src/race/prompts";

test("the first prompt is one that guesses help, and each says what kind it is", () => {
  expect(SAMPLES[0].id).toBe("edit");
  expect(hintOf("edit")).toMatch(/guesses ahead help most/);
  expect(hintOf("chat")).toMatch(/guesses ahead help least/);
  expect(new Set([OWN, ...SAMPLES.map(({ id }) => id)].map(hintOf)).size).toBe(SAMPLES.length + 1);
});
