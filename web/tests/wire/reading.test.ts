import { describe, expect, it, test } from "vitest";
import { readEvent } from "../../src/wire/reading";

const TREE = {
  texts: ["The", " cat"],
  parents: [-1, 0],
  sources: ["", "suffix"],
  estimates: [1, 0.5],
  chances: [1, 0.4],
  path: [0, 1],
};
const STEP = {
  ms: 4.5,
  nodes: 2,
  drafted: 1,
  accepted: 1,
  emitted: 2,
  reason: "best",
  tokens: [
    { text: " cat", source: "suffix" },
    { text: " sat", source: "" },
  ],
  tree: TREE,
};

const read = (event: object) => readEvent(JSON.stringify({ type: "x", ...event }));
const spec = (change: object) => read({ x_spec: { drafted: 1, accepted: 1, emitted: 2, ...change } })?.x_spec;
const step = (change: object) => spec({ steps: [{ ...STEP, ...change }] })?.steps?.[0];

test("all that the page reads of an event comes through as it is, and nothing else", () => {
  const event = {
    type: "response.output_text.delta",
    response_id: "r",
    delta: " cat sat",
    x_seq: 3,
    x_spec: {
      drafted: 1,
      accepted: 1,
      emitted: 2,
      input_tokens: 40,
      cached_tokens: 32,
      steps: [STEP],
      spans: [
        [4, "suffix"],
        [4, ""],
      ],
    },
  };
  const told = { ...event, event_id: "event_9", content_index: 0, x_spec: { ...event.x_spec, source: "suffix" } };
  expect(readEvent(JSON.stringify(told))).toEqual(event);
});

test.each(["{", "null", "[]", '"x"', '{"type":3}', "{}", `${"[".repeat(1e6)}`])("no event: %.20s", (data) => {
  expect(readEvent(data)).toBeNull();
});

test.each<[string, object]>([
  ["a fault", { error: { message: 5, code: {}, event_id: [] } }],
  ["an error that is a text", { error: "no" }],
  ["a response", { response: { id: 5, status: "odd", usage: "none", status_details: 5 } }],
  ["a delta", { delta: ["x"], x_seq: "1", response_id: {} }],
  ["figures", { x_spec: 5 }],
  ["a session", { session: { model: ["m"] } }],
  ["prefilled", { tokens: "5", cached_tokens: -1, text_end: 0.5 }],
])("wrongly typed fields of %s are as good as not there", (_, fields) => {
  const text = JSON.stringify(read(fields));
  expect(text.match(/[\d[]|no|odd/g) ?? []).toEqual([]);
});

test("numbers that are none, or too large to count with, are not there", () => {
  expect(readEvent('{"type":"x","x_seq":1e999,"tokens":1e300}')).toEqual({ type: "x" });
  expect(readEvent('{"type":"x","x_spec":{"emitted":1e999}}')?.x_spec).toEqual({ drafted: 0, accepted: 0, emitted: 0 });
});

test("keys that belong to every object change nothing", () => {
  const event = readEvent('{"type":"x","__proto__":{"delta":"evil"},"constructor":{"prototype":{"delta":"evil"}}}');
  expect(event).toEqual({ type: "x" });
  expect(event?.delta).toBeUndefined();
  expect(({} as { delta?: string }).delta).toBeUndefined();
});

describe("a step", () => {
  it.each<[string, object]>([
    ["no time", { ms: null }],
    ["a time that is a text", { ms: "5" }],
    ["no tokens", { tokens: null }],
    ["tokens that are none", { tokens: [null] }],
    ["texts that are numbers", { tokens: [{ text: 5, source: "" }] }],
    ["half a guess", { accepted: 0.5 }],
    ["more tokens than a tree has", { tokens: Array(300).fill(STEP.tokens[0]) }],
  ])("with %s is left out, and the others are not", (_, change) => {
    expect(spec({ steps: [null, { ...STEP, ...change }, 5, STEP] })?.steps).toEqual([STEP]);
  });

  it.each<[string, object]>([
    ["texts that are none", { texts: ["The", 1] }],
    ["a missing list", { sources: undefined }],
    ["lists that are texts", { parents: "ab", path: "01" }],
    ["a parent between two nodes", { parents: [-1, 0.5] }],
    ["chances without bounds", { chances: [1, null] }],
  ])("whose tree has %s is without its tree", (_, change) => {
    expect(step({ tree: { ...TREE, ...change } })).toEqual({ ...STEP, tree: null });
  });

  it("needs neither reason nor tree", () => {
    expect(step({ reason: 5, tree: 5 })).toEqual({ ...STEP, reason: null, tree: null });
  });
});

test.each([["ab"], [[null]], [[["a", "b"]]], [[[2, 5]]], [[[-1, "x"]]], [{}]])("spans %j are not told", (spans) => {
  expect(spec({ spans })).not.toHaveProperty("spans");
});

test("names of drafters are cut where no name ends", () => {
  expect(step({ tokens: [{ text: "a", source: "n".repeat(1e5) }] })?.tokens[0]?.source).toHaveLength(200);
});
