import { describe, expect, it } from "vitest";
import { comparison } from "../../src/voice/comparison";
import { Turn } from "../../src/voice/turn";

/** A turn of a second that ended 20 ms after its last words, with a first text 60 ms later. */
function turn(changes: Partial<Turn> = {}): Turn {
  return Object.assign(new Turn(0), { heard: 980, ended: 1_000, firstText: 1_060, ...changes });
}

describe("comparison", () => {
  it("has nothing to tell before text came", () => {
    expect(comparison(new Turn(0))).toBe("");
    expect(comparison(turn({ firstText: null }))).toBe("");
  });

  it("tells the wait for text and how much of the prompt was known", () => {
    expect(comparison(turn())).toBe("Text came 60.0 ms after your turn had ended.");
    const told = turn();
    told.prefilled(900, { type: "x_input_text.prefilled", tokens: 40, cached_tokens: 30 });
    told.prefilled(950, { type: "x_input_text.prefilled", tokens: 44, cached_tokens: 41 });
    expect(comparison(told)).toContain("; 41 of 44 prompt tokens were already computed.");
    told.finish({ output_tokens: 1, input_tokens: 44, input_token_details: { cached_tokens: 42 } });
    expect(comparison(told)).toContain("; 42 of 44 prompt tokens were already computed.");
  });

  it("tells of a silence that was waited for only where it was long", () => {
    expect(comparison(turn({ heard: 951 }))).not.toContain("clear");
    expect(comparison(turn({ heard: 950 }))).toContain("was clear 50.0 ms after the last words.");
  });

  it("tells the first clause, the breaking in and what is kept of the reply", () => {
    const broken = turn({ firstClause: 1_200, brokeIn: 2_000, cancelled: 2_015, cut: { length: 90, heard: 30 } });
    expect(comparison(broken)).toMatch(
      /The first clause was ready to be spoken after 200 ms\. You broke in: .* 15\.0 ms later\. .* keeps 30 of its 90/,
    );
    expect(comparison(turn({ brokeIn: 2_000 }))).not.toContain("broke in"); // the server has not said it yet
  });
});
