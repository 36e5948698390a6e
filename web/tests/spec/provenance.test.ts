import { describe, expect, it } from "vitest";
import { Provenance } from "../../src/spec/provenance";
import type { Step } from "../../src/wire/events";

type Told = [text: string, source: string];

function step(...tokens: Told[]): Step {
  return {
    ms: 1,
    nodes: 1,
    drafted: 0,
    accepted: 0,
    emitted: tokens.length,
    reason: null,
    tokens: tokens.map(([text, source]) => ({ text, source })),
    tree: null,
  };
}

/** Text and step of each part. */
function parts(provenance: Provenance, text: string, spans?: [number, string][]) {
  return provenance.take(text, spans).map((token) => [token.text, token.step]);
}

describe("Provenance", () => {
  it("gives text to tokens of earlier steps that waited for it", () => {
    const provenance = new Provenance();
    provenance.came(step(["Hel", "suffix"], ["lo", ""]), 0);
    expect(parts(provenance, "Hel", [[3, "suffix"]])).toEqual([["Hel", 0]]);
    provenance.came(step([" you", ""]), 1);
    expect(
      parts(provenance, "lo you", [
        [2, ""],
        [4, ""],
      ]),
    ).toEqual([
      ["lo", 0],
      [" you", 1],
    ]);
  });

  it("counts code points and ties a character to the token that completed it", () => {
    const provenance = new Provenance();
    provenance.came(step(["a", ""], ["bytes:\\xf0\\x9f", "suffix"]), 0);
    provenance.came(step(["bytes:\\x98\\x80", "suffix"], ["b", ""]), 1);
    expect(
      parts(provenance, "a😀b", [
        [1, ""],
        [1, "suffix"],
        [1, ""],
      ]),
    ).toEqual([
      ["a", 0],
      ["😀", 1],
      ["b", 1],
    ]);
  });

  it("tells two characters of parts apart", () => {
    const provenance = new Provenance();
    provenance.came(step(["bytes:\\xf0\\x9f", ""], ["bytes:\\x98\\x80", ""]), 0);
    provenance.came(step(["bytes:\\xf0\\x9f", ""], ["bytes:\\x98\\x81", ""]), 1);
    expect(
      parts(provenance, "😀😁", [
        [1, ""],
        [1, ""],
      ]),
    ).toEqual([
      ["😀", 0],
      ["😁", 1],
    ]);
  });

  it("passes over tokens that became no text, and takes a token's text in two parts", () => {
    const provenance = new Provenance();
    provenance.came(step(["<think>", ""], ["one two", "draft"], [" three", ""]), 4);
    expect(parts(provenance, "one", [[3, "draft"]])).toEqual([["one", 4]]);
    expect(
      parts(provenance, " two three", [
        [4, "draft"],
        [6, ""],
      ]),
    ).toEqual([
      [" two", 4],
      [" three", 4],
    ]);
  });

  it("lets no tokens of thoughts wait, but for those of the step in which the text may have begun", () => {
    const provenance = new Provenance();
    const thoughts = Array.from({ length: 90 }, (_, i): Told => [` t${i}`, ""]);
    provenance.came(step(...thoughts), 0);
    provenance.thought(90);
    provenance.came(step(["</think>", ""], ["So", "suffix"]), 1);
    provenance.thought(2);
    provenance.came(step([" be", ""], [" it", ""]), 2);
    expect(
      parts(provenance, "So be it", [
        [2, "suffix"],
        [3, ""],
        [3, ""],
      ]),
    ).toEqual([
      ["So", 1],
      [" be", 2],
      [" it", 2],
    ]);
  });

  it("does not guess: text that is nobody's has no step, and what the spans do not reach has no source", () => {
    const provenance = new Provenance();
    provenance.came(step(["cat", "suffix"]), 0);
    expect(provenance.take("dog", [[3, "suffix"]])).toEqual([
      { text: "dog", source: "suffix", step: null, node: null },
    ]);
    expect(provenance.take("cats", [[3, "suffix"]])).toEqual([
      { text: "cat", source: "suffix", step: 0, node: null },
      { text: "s", source: null, step: null, node: null },
    ]);
  });

  it("forgets who waited when text comes without spans", () => {
    const provenance = new Provenance();
    provenance.came(step(["a", ""], ["b", ""]), 0);
    expect(provenance.take("ab", undefined)).toEqual([{ text: "ab", source: null, step: null, node: null }]);
    expect(parts(provenance, "b", [[1, ""]])).toEqual([["b", null]]);
  });

  it("bears any number of tokens that never become text", () => {
    const provenance = new Provenance();
    for (let index = 0; index < 1000; index += 1) provenance.came(step(["quiet", ""]), index);
    provenance.came(step(["said", ""]), 1000);
    expect(parts(provenance, "quiet", [[5, ""]])).toEqual([["quiet", 1000 - 255]]);
  });
});
