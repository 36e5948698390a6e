import { expect, test } from "vitest";
import { decimal, milliseconds, percent, plural, whole } from "../../src/shell/format";

test.each([
  [null, "–"],
  [8.26, "8.3 ms"],
  [99.94, "99.9 ms"],
  [99.96, "100 ms"],
  [999.4, "999 ms"],
  [999.6, "1.00 s"],
  [12345, "12.3 s"],
])("%s milliseconds read %s", (value, text) => {
  expect(milliseconds(value)).toBe(text);
});

test("decimals keep three digits or so", () => {
  expect([null, 1, 2.555, 12.34, 123.4].map(decimal)).toEqual(["–", "1.00", "2.56", "12.3", "123"]);
});

test("shares are whole percents, but for what is hardly there or hardly missing", () => {
  expect([null, 0, 0.625, 1].map(percent)).toEqual(["–", "0 %", "63 %", "100 %"]);
  expect([4120 / 4133, 0.99999, 0.004, 0.00001].map(percent)).toEqual(["99.7 %", "99.9 %", "0.4 %", "0.1 %"]);
});

test("counts have their thousands apart and the right word behind them", () => {
  expect([null, 0, 2.6, 12345].map(whole)).toEqual(["–", "0", "3", "12,345"]);
  expect([plural(1, "guess", "guesses"), plural(2000, "token")]).toEqual(["1 guess", "2,000 tokens"]);
});
