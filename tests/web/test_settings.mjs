import assert from "node:assert/strict";
import test from "node:test";

import { parse, recall, remember } from "../../web/settings.js";

const EMPTY = { instructions: "", temperature: "", seed: "", maxTokens: "", speculation: true };
const draw = () => 7;

test("empty fields are left to the server, but the seed is drawn here", () => {
  const { settings, problem } = parse(EMPTY, draw);
  assert.equal(problem, null);
  assert.deepEqual(settings, { instructions: "", temperature: null, seed: 7, maxTokens: null, speculation: true });
});

test("values arrive as numbers", () => {
  const { settings } = parse({ instructions: " Be brief. ", temperature: "0", seed: "0", maxTokens: "64", speculation: false }, draw);
  assert.deepEqual(settings, { instructions: "Be brief.", temperature: 0, seed: 0, maxTokens: 64, speculation: false });
});

for (const [field, value] of [
  ["temperature", "hot"],
  ["temperature", "-1"],
  ["temperature", "NaN"],
  ["temperature", "Infinity"],
  ["seed", "1.5"],
  ["seed", "9007199254740993"],
  ["maxTokens", "0"],
]) {
  test(`${field} ${value} is named with its field`, () => {
    const { settings, problem } = parse({ ...EMPTY, [field]: value }, draw);
    assert.equal(settings, null);
    assert.equal(problem.field, field);
    assert.match(problem.sentence, /^The .* must be a .*number from .*\.$/);
  });
}

test("settings survive a visit, and storage that fails is no failure", () => {
  const kept = new Map();
  const storage = () => ({ getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, text) });
  assert.deepEqual(recall(storage), {});
  remember(storage, { seed: "5" });
  assert.deepEqual(recall(storage), { seed: "5" });
  const forbidden = () => {
    throw new Error("denied");
  };
  remember(forbidden, { seed: "5" });
  assert.deepEqual(recall(forbidden), {});
  assert.deepEqual(recall(() => ({ getItem: () => "not json" })), {});
});
