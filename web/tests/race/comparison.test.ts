import { describe, expect, it } from "vitest";
import { compare } from "../../src/race/comparison";

describe("compare", () => {
  it("counts the characters of equal texts, not their code units", () => {
    expect(compare("né 🚲", "né 🚲")).toEqual({ same: true, characters: 4 });
    expect(compare("", "")).toEqual({ same: true, characters: 0 });
  });

  it("shows the first difference with what follows in both", () => {
    expect(compare("The sky is blue.", "The sky is red.")).toEqual({
      same: false,
      at: 12,
      before: "The sky is ",
      first: "blue.",
      second: "red.",
    });
  });

  it("finds the end of the shorter text", () => {
    expect(compare("One", "One two")).toMatchObject({ same: false, at: 4, before: "One", first: "", second: " two" });
    expect(compare("One two", "One")).toMatchObject({ first: " two", second: "" });
  });

  it("does not call look-alikes equal, and never parts a character", () => {
    expect(compare("e\u0301", "\u00e9")).toMatchObject({ same: false, at: 1 });
    expect(compare("🚲", "🚳")).toMatchObject({ at: 1, first: "🚲", second: "🚳" });
  });

  it("shows a place of long texts and not the whole", () => {
    const [a, b] = ["x".repeat(500), "x".repeat(400) + "y".repeat(100)];
    const found = compare(a, b);
    expect(found).toMatchObject({ at: 401, before: "x".repeat(48), first: "x".repeat(64), second: "y".repeat(64) });
  });
});
