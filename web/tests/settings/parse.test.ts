import { expect, test } from "vitest";
import {
  drawSeed,
  type FormValues,
  isProblem,
  parse,
  type Settings,
  samplingBody,
  slip,
} from "../../src/settings/parse";

const EMPTY: FormValues = {
  instructions: "",
  temperature: "",
  seed: "",
  maxTokens: "",
  topP: "",
  topK: "",
  minP: "",
  repetitionPenalty: "",
  speculation: true,
};
const UNSET: Settings = {
  instructions: "",
  temperature: null,
  seed: 7,
  maxTokens: null,
  topP: null,
  topK: null,
  minP: null,
  repetitionPenalty: null,
  speculation: true,
  drafter: "",
  maxNodes: null,
};
const draw = () => 7;

test("empty fields are left to the server, but the seed is drawn here", () => {
  expect(parse(EMPTY, draw)).toEqual(UNSET);
  expect(samplingBody(UNSET)).toEqual({ seed: 7 });
});

test("values arrive as numbers, under the names of the wire", () => {
  const filled: FormValues = {
    instructions: " Be brief. ",
    temperature: "0",
    seed: "0",
    maxTokens: "64",
    topP: "0.9",
    topK: "40",
    minP: "0.05",
    repetitionPenalty: "1.1",
    speculation: false,
  };
  const settings = parse(filled, draw) as Settings;
  expect(settings.instructions).toBe("Be brief.");
  expect(settings.speculation).toBe(false);
  expect(samplingBody(settings)).toEqual({
    temperature: 0,
    seed: 0,
    max_output_tokens: 64,
    top_p: 0.9,
    top_k: 40,
    min_p: 0.05,
    repetition_penalty: 1.1,
  });
});

test.each([
  ["temperature", "hot"],
  ["temperature", "-1"],
  ["temperature", "NaN"],
  ["temperature", "Infinity"],
  ["seed", "1.5"],
  ["seed", "9007199254740993"],
  ["maxTokens", "0"],
  ["topP", "0"],
  ["topK", "2.5"],
  ["minP", "1.1"],
  ["repetitionPenalty", "0"],
  ["maxNodes", "0"],
  ["maxNodes", "65"],
] as const)("%s %s is named with its field", (field, value) => {
  const problem = parse({ ...EMPTY, [field]: value }, draw);
  if (!isProblem(problem)) throw new Error("it was taken");
  expect(problem.field).toBe(field);
  expect(slip(field, value)).toBe(problem.sentence);
  expect(problem.sentence).toMatch(/^The .* must be a .*number from .*\.$/);
});

test("what tunes trees comes through, and is not sampling", () => {
  const settings = parse({ ...EMPTY, drafter: "suffix", maxNodes: "8" }, draw) as Settings;
  expect(settings).toEqual({ ...UNSET, drafter: "suffix", maxNodes: 8 });
  expect(samplingBody(settings)).toEqual({ seed: 7 });
  expect(slip("maxNodes", "8")).toBe("");
});

test("a drawn seed is one that a request may have", () => {
  const settings = parse({ ...EMPTY, seed: String(drawSeed()) }, draw);
  expect(isProblem(settings)).toBe(false);
});
