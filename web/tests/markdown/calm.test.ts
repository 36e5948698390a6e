import { describe, expect, it } from "vitest";
import { calm } from "../../src/markdown/calm";

describe("calm", () => {
  it.each([
    ["some **bold", "some **bold**"],
    ["some **bold*", "some **bold**"],
    ["some **", "some"],
    ["**bold *and* more", "**bold *and* more**"],
    ["a `code", "a `code`"],
    ["a `co*de", "a `co*de`"],
    ["see [the docs](https://exa", "see the docs"],
    ["![a cat](http", "a cat"],
    ["2 * 3 and snake_case", "2 * 3 and snake_case"],
    ["~~gone", "~~gone~~"],
    ["\\*not", "\\*not"],
    ["AT&am", "AT"],
    ["**done** and `done`", "**done** and `done`"],
    ["a **b `c", "a **b `c`**"],
  ])("%j is shown as %j", (text, shown) => {
    expect(calm(text)).toBe(shown);
  });
});
