import { describe, expect, it } from "vitest";
import {
  firstForm,
  isPlanProblem,
  keyOf,
  knownForm,
  type Plan,
  planned,
  type RaceForm,
  request,
  stillAsks,
} from "../../src/race/plan";
import { SAMPLES } from "../../src/race/prompts";
import { PLAN } from "./fixtures";

const SETTINGS = {
  instructions: " Be brief. ",
  temperature: "0.2",
  seed: "5",
  maxTokens: "9",
  topP: "",
  topK: "40",
  minP: "",
  repetitionPenalty: "",
  speculation: false,
};
const FORM: RaceForm = { prompt: "own", own: "Hi", seed: "7", limit: "32", mode: "suffix", maxNodes: "8" };

describe("planned", () => {
  it("takes sampling from the chat's settings, seed and length from the form", () => {
    expect(planned(FORM, SETTINGS)).toEqual({
      prompt: "Hi",
      instructions: "Be brief.",
      sampling: { temperature: 0.2, top_k: 40, seed: 7, max_output_tokens: 32 },
      seed: 7,
      limit: 32,
      mode: "suffix",
      maxNodes: 8,
    } satisfies Plan);
  });

  it("has a sample and sane numbers to begin with", () => {
    const form = firstForm(SETTINGS);
    expect(form.seed).toBe("5");
    expect(planned(form, SETTINGS)).toMatchObject({
      prompt: SAMPLES[0].text,
      limit: 128,
      mode: "auto",
      maxNodes: null,
    });
    expect(firstForm({ ...SETTINGS, seed: "" }).seed).toMatch(/^\d+$/);
  });

  it("does not keep a prompt that is none", () => {
    expect(knownForm({ ...FORM, prompt: "x" })).toEqual({ ...FORM, prompt: SAMPLES[0].id });
    expect(knownForm(FORM)).toBe(FORM);
  });

  it.each([
    [{ own: "  " }, "own", "no prompt yet"],
    [{ seed: "x" }, "seed", "seed must be a whole number"],
    [{ limit: "1" }, "limit", "from 2 to 1024"],
    [{ maxNodes: "65" }, "maxNodes", "from 1 to 64"],
  ])("names the field that is wrong: %o", (change, field, words) => {
    const plan = planned({ ...FORM, ...change }, SETTINGS);
    expect(plan).toMatchObject({ field });
    expect(isPlanProblem(plan) && plan.sentence).toContain(words);
  });

  it("says what is wrong in the chat's settings", () => {
    expect(planned(FORM, { ...SETTINGS, temperature: "hot" })).toMatchObject({ field: null });
    expect(planned(FORM, { ...SETTINGS, seed: "bad" })).toMatchObject({ seed: 7 }); // which the race does not use
  });
});

describe("stillAsks", () => {
  const ran = planned(FORM, SETTINGS) as Plan;

  it("holds until the form or the chat's settings change", () => {
    expect(stillAsks(FORM, SETTINGS, ran)).toBe(true);
    expect(stillAsks({ ...FORM, seed: " 7 " }, { ...SETTINGS, seed: "8" }, ran)).toBe(true);
    const changes = [
      { prompt: "edit" },
      { own: "Ho" },
      { seed: "8" },
      { limit: "33" },
      { mode: "auto" },
      { maxNodes: "" },
    ];
    for (const change of changes) expect(stillAsks({ ...FORM, ...change }, SETTINGS, ran)).toBe(false);
    expect(stillAsks({ ...FORM, seed: "x" }, SETTINGS, ran)).toBe(false);
    expect(stillAsks(FORM, { ...SETTINGS, temperature: "1" }, ran)).toBe(false);
  });

  it("holds for a seed that was drawn", () => {
    const drawn = { ...FORM, seed: "" };
    expect(stillAsks(drawn, SETTINGS, planned(drawn, SETTINGS) as Plan)).toBe(true);
  });
});

describe("request", () => {
  it("asks for the same reply twice, but for who may guess", () => {
    const plain = request(PLAN, "plain").response as Record<string, unknown>;
    const speculating = request(PLAN, "speculating").response as Record<string, unknown>;
    expect(plain.speculation).toEqual({ mode: "none", trace: true });
    expect(speculating).toEqual({ ...plain, speculation: { mode: "auto", trace: true } });
    expect(plain).toMatchObject({ conversation: "none", seed: 5, max_output_tokens: 16 });
  });

  it("warms with one token of the same prompt", () => {
    const plain = request(PLAN, "plain").response as object;
    expect(request(PLAN, "warm").response).toEqual({ ...plain, max_output_tokens: 1 });
  });

  it("limits the tree where that is asked", () => {
    expect(request({ ...PLAN, maxNodes: 4 }, "speculating").response).toMatchObject({ speculation: { max_nodes: 4 } });
  });
});

describe("keyOf", () => {
  it("tells replies apart, and not how they are drafted", () => {
    expect(keyOf({ ...PLAN, mode: "suffix", maxNodes: 3 })).toBe(keyOf(PLAN));
    expect(keyOf({ ...PLAN, sampling: { ...PLAN.sampling, seed: 6 } })).not.toBe(keyOf(PLAN));
    expect(keyOf({ ...PLAN, prompt: "Hi" })).not.toBe(keyOf(PLAN));
  });
});
