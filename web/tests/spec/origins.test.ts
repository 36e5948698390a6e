// Origins in words, and that each has a colour that can be read and a line of its own.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { drafters, meanings, originOf, shortSource } from "../../src/spec/origins";

const NAMES = ["suffix", "recurrent", "medusa", "hydra", "eagle", "draft", "grammar"];

describe("originOf", () => {
  it("knows the model, the unknown, drafters with a colour and any others", () => {
    expect(originOf("")).toEqual({ key: "model", joint: false, label: "the model itself" });
    expect(originOf(null).key).toBe("unknown");
    expect(originOf("suffix+recurrent")).toEqual({ key: "suffix", joint: true, label: "suffix and recurrent" });
    expect(originOf("something new").key).toBe("other");
    expect(originOf("constructor").key).toBe("other");
    expect(drafters("a+b")).toEqual(["a", "b"]);
    expect([shortSource("recurrent"), shortSource("suffix+recurrent")]).toEqual(["recurrent", "suf+rec"]);
    expect([shortSource("a+b+c"), shortSource("suffix+medusa+draft+eagle")]).toEqual(["a+b+c", "suf+med+2"]);
  });
});

describe("meanings", () => {
  it("tells each origin once, also where it had company", () => {
    expect(meanings(["suffix+recurrent", "suffix", ""]).map(([label]) => label)).toEqual([
      "suffix",
      "recurrent",
      "the model itself",
    ]);
    expect(meanings([null])).toEqual([["unknown", "the server did not say whose"]]);
  });

  it("has none for drafters that nobody knows", () => {
    expect(meanings(["constructor", "others"])).toEqual([]);
  });

  it("has one for every drafter of the server", () => {
    expect(meanings(NAMES).map(([label]) => label)).toEqual(NAMES);
  });
});

describe("colours and lines", () => {
  const css = (path: string) => readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8");
  const base = css("styles/base.css");
  const rules = css("spec/tokens.css");
  /** Of a colour: as it is in light, and in dark. */
  const pair = (name: string) =>
    new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\);`).exec(base)?.slice(1) ?? [];
  const keys = [...NAMES, "something new"].map((name) => originOf(name).key);

  it("no two origins share a colour", () => {
    expect(new Set(keys).size).toBe(NAMES.length + 1);
    for (const scheme of [0, 1]) {
      expect(new Set([...keys, "model"].map((key) => pair(`origin-${key}`)[scheme])).size).toBe(keys.length + 1);
    }
  });

  it("no two lines have the same form and weight", () => {
    const lines = keys.map((key) => {
      const rule = new RegExp(`\\.spec-${key} \\{([^}]*)\\}`).exec(rules)?.[1] ?? "";
      expect(rule).toContain(`color: var(--origin-${key});`);
      return [/--form: (\w+);/.exec(rule)?.[1], /--weight: (\w+);/.exec(rule)?.[1]].join(" ");
    });
    expect(new Set(lines).size).toBe(keys.length);
    expect(lines.every((line) => !line.startsWith(" "))).toBe(true);
  });

  it.each(keys)("%s can be read on its own tint, light and dark", (key) => {
    const share = Number(/color-mix\(in srgb, currentColor (\d+)%, var\(--surface\)\)/.exec(rules)?.[1]) / 100;
    expect(share).toBeGreaterThan(0.1);
    for (const scheme of [0, 1]) {
      const [colour, behind] = [pair(`origin-${key}`)[scheme] ?? "", pair("surface")[scheme] ?? ""];
      expect(contrast(colour, mixed(colour, behind, share))).toBeGreaterThan(4.5);
    }
  });

  it.each([...keys, "model"])("%s can be read on every ground, light and dark", (key) => {
    for (const ground of ["ground", "surface", "user", "tint"]) {
      for (const scheme of [0, 1]) {
        expect(contrast(pair(`origin-${key}`)[scheme] ?? "", pair(ground)[scheme] ?? "")).toBeGreaterThan(4.5);
      }
    }
  });
});

/** The contrast of two colours (WCAG 2.2). */
function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** So much of one colour over another. */
function mixed(one: string, other: string, share: number): string {
  const parts = [1, 3, 5].map((place) => {
    const [a, b] = [one, other].map((colour) => Number.parseInt(colour.slice(place, place + 2), 16));
    return Math.round((a ?? 0) * share + (b ?? 0) * (1 - share));
  });
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((place) => {
    const part = Number.parseInt(colour.slice(place, place + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
