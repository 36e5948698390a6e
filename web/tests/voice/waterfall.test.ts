import { describe, expect, it } from "vitest";
import { comparison } from "../../src/voice/comparison";
import { Turn } from "../../src/voice/turn";
import { waterfall } from "../../src/voice/waterfall";

function turn(): Turn {
  const turn = new Turn(1_000);
  turn.append(1_000);
  turn.append(1_400);
  turn.prefilled(1_450, { type: "x_input_text.prefilled", tokens: 44, cached_tokens: 32 });
  turn.heard = 1_300;
  turn.ended = turn.asked = 2_000;
  turn.firstText = 2_063;
  turn.firstClause = 2_120;
  return turn;
}

describe("waterfall", () => {
  it("has a scale for the seconds of speech and one for the answer", () => {
    expect(waterfall(turn())).toEqual([
      {
        name: "While you spoke",
        span: 1_000,
        rows: [
          { name: "Words sent", ticks: [0, 400], until: null, note: "2 times" },
          { name: "Prompt ready", ticks: [450], until: null, note: "32 of 44 tokens" },
        ],
      },
      {
        name: "After your turn",
        span: 120,
        rows: [
          { name: "Reply asked for", ticks: [], until: 0, note: "0.0 ms" },
          { name: "First text", ticks: [], until: 63, note: "63.0 ms" },
          { name: "First clause", ticks: [], until: 120, note: "120 ms" },
        ],
      },
    ]);
  });

  it("has a group for breaking in once that has an end", () => {
    const cut = turn();
    cut.brokeIn = 3_000;
    expect(waterfall(cut)).toHaveLength(2);
    cut.cancelled = 3_012;
    expect(waterfall(cut)[2]).toEqual({
      name: "After you broke in",
      span: 12,
      rows: [{ name: "Reply ended", ticks: [], until: 12, note: "12.0 ms" }],
    });
  });

  it("has nothing to draw before the first word is sent", () => {
    expect(waterfall(new Turn(0))).toEqual([]);
  });
});

describe("comparison", () => {
  it("says what was computed, by the newest that is known of it", () => {
    const spoken = turn();
    expect(comparison(spoken)).toBe(
      "Text came 63.0 ms after your turn had ended; 32 of 44 prompt tokens were already computed. " +
        "That the turn had ended was clear 700 ms after the last words. " +
        "The first clause was ready to be spoken after 120 ms.",
    );
    spoken.finish({ input_tokens: 44, input_token_details: { cached_tokens: 16 } });
    expect(comparison(spoken)).toMatch(
      /^Text came 63\.0 ms after your turn had ended; 16 of 44 prompt tokens were already computed\./,
    );
  });

  it("says what breaking in did", () => {
    const cut = new Turn(0);
    expect(comparison(cut)).toBe("");
    cut.brokeIn = 10;
    cut.cancelled = 22;
    cut.cut = { length: 80, heard: 34 };
    expect(comparison(cut)).toBe(
      "You broke in: the reply had ended 12.0 ms later. The conversation keeps 34 of its 80 characters, what you heard.",
    );
  });
});
