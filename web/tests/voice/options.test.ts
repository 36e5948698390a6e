// @vitest-environment jsdom
import { beforeEach, expect, test } from "vitest";
import { change, optionsStore } from "../../src/voice/options";

beforeEach(() => localStorage.removeItem("paceline.voice"));

test("options are remembered, and stay within bounds", () => {
  const options = optionsStore("en-US");
  change(options, { pace: 9_000, rate: Number.NaN, language: "de-DE" });
  expect(options.value).toMatchObject({ pace: 600, rate: 1, language: "de-DE" });
  expect(optionsStore("en-US").value).toEqual(options.value);
});

test("what was stored out of bounds, or is of another kind, does not count", () => {
  localStorage.setItem("paceline.voice", JSON.stringify({ rate: 99, pace: "fast", voice: "v" }));
  expect(optionsStore("en-US").value).toEqual({ language: "en-US", aloud: true, voice: "v", rate: 2, pace: 170 });
});

test.each(["<x>", "en-US@posix", ""])("a stored language that is none, such as %j, does not count", (language) => {
  localStorage.setItem("paceline.voice", JSON.stringify({ language }));
  expect(optionsStore("de-DE").value.language).toBe("de-DE");
});

test("a browser whose language is none is spoken to in English", () => {
  const options = optionsStore("en-US@posix");
  expect(options.value.language).toBe("en-US");
  change(options, { language: "<x>" });
  expect(options.value.language).toBe("en-US");
});
