import { expect, it } from "vitest";
import { advice } from "../../src/wire/errors";

it("keeps the server's own words and says what to do where they do not", () => {
  expect(advice({ message: "It broke; send less." }, "-")).toBe("It broke; send less.");
  expect(advice({ message: "The engine failed.", code: "engine_error" }, "-")).toMatch(
    /^The engine failed\. Try again/,
  );
  expect(advice({ code: "invalid_api_key" }, "-")).toMatch(/settings/);
  expect(advice({ message: "Odd; wait.", code: "toString" }, "-")).toBe("Odd; wait."); // codes come from outside
  expect(advice({ message: " ", code: "new_code" }, "Nothing said.")).toBe("Nothing said.");
});
