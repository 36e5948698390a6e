import { expect, test } from "vitest";
import { closeReason } from "../../src/wire/closing";

test.each([1001, 1008, 1009, 1011, 1012, 1013, 4999])("close code %i has words", (code) => {
  expect(closeReason(code)).toMatch(/^(The|A) \w+/);
});
