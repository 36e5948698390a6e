import { expect, it } from "vitest";
import { advice, ownWords } from "../../src/wire/errors";

it("keeps the server's own words and says what to do where they do not", () => {
  expect(advice({ message: "It broke; send less." }, "-")).toBe("It broke; send less.");
  expect(advice({ message: "The engine failed.", code: "engine_error" }, "-")).toMatch(
    /^The engine failed\. Try again/,
  );
  expect(advice({ code: "invalid_api_key" }, "-")).toMatch(/settings/);
  expect(advice({ message: "Odd; wait.", code: "toString" }, "-")).toBe("Odd; wait."); // codes come from outside
  expect(advice({ message: " ", code: "new_code" }, "Nothing said.")).toBe("Nothing said.");
});

it("cuts words without an end", () => {
  expect(ownWords(" Short. ")).toBe("Short.");
  const cut = ownWords(`x${"🦆".repeat(5_000)}`);
  expect(cut.length).toBeLessThanOrEqual(500);
  expect(cut).toMatch(/^x(🦆)+…$/u);
  expect([undefined, null, 5].map(ownWords)).toEqual(["", "", ""]);
});
