import { describe, expect, it } from "vitest";
import { Figures } from "../../src/spec/figures";

describe("Figures", () => {
  it("counts from the request to the first text, and from there to the last", () => {
    const figures = new Figures(100);
    figures.delta(150, { drafted: 0, accepted: 0, emitted: 1 });
    figures.delta(170, { drafted: 3, accepted: 1, emitted: 2 });
    figures.delta(190, { drafted: 3, accepted: 1, emitted: 2 });
    figures.finish({ output_tokens: 6, input_tokens: 40, input_token_details: { cached_tokens: 10 } });
    expect(figures.ttft).toBe(50);
    expect(figures.tpot).toBe(8);
    expect(figures.rate).toBe(125);
    expect(figures.perStep).toBeCloseTo(5 / 3);
    expect(figures.acceptance).toBeCloseTo(1 / 3);
    expect(figures.cacheHit).toBe(0.25);
  });

  it("knows nothing before the first text", () => {
    const figures = new Figures(0);
    expect([figures.ttft, figures.tpot, figures.perStep, figures.acceptance, figures.cacheHit]).toEqual(
      Array(5).fill(null),
    );
  });

  it("bears a server without figures", () => {
    const figures = new Figures(0);
    figures.delta(5, undefined);
    figures.finish(null);
    expect(figures.ttft).toBe(5);
    expect(figures.tokens).toBe(0);
  });
});
