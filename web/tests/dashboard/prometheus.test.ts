import { expect, test } from "vitest";
import { parse } from "../../src/dashboard/prometheus";

const values = (text: string) => [...parse(text).values()].flatMap(({ samples }) => samples.map(({ value }) => value));

test("families come with their kind, and a histogram's parts belong to it", () => {
  const families = parse(
    [
      "# HELP h Seconds.",
      "# TYPE h histogram",
      'h_bucket{le="0.5"} 1.0',
      'h_bucket{le="+Inf"} 2.0',
      "h_count 2.0",
      "h_sum 3.5",
      "# TYPE h_created gauge",
      "h_created 1.7e+09",
      "# TYPE c_total counter",
      "c_total 4.0",
      "",
    ].join("\n"),
  );
  expect([...families.keys()]).toEqual(["h", "h_created", "c_total"]);
  expect(families.get("h")?.samples.map(({ name, value }) => [name, value])).toEqual([
    ["h_bucket", 1],
    ["h_bucket", 2],
    ["h_count", 2],
    ["h_sum", 3.5],
  ]);
  expect(families.get("h")?.samples[1]?.labels.get("le")).toBe("+Inf");
  expect(families.get("c_total")?.kind).toBe("counter");
  expect(families.get("h_created")?.samples[0]?.value).toBe(1.7e9);
});

test("a counter's family takes no parts, and a sample without a type is untyped", () => {
  const families = parse("# TYPE c counter\nc 1\nc_count 2\nlone 3 1700000000000");
  expect([...families.values()].map(({ name, kind, samples }) => [name, kind, samples.length])).toEqual([
    ["c", "counter", 1],
    ["c_count", "untyped", 1],
    ["lone", "untyped", 1],
  ]);
});

test("labels hold escapes, braces, commas and spaces", () => {
  const line = String.raw`m{a="q\"b\\n\nx",b="}, c=\"1\"", d = "",} 5`;
  const [sample] = parse(line).get("m")?.samples ?? [];
  expect([...(sample?.labels ?? [])]).toEqual([
    ["a", 'q"b\\n\nx'],
    ["b", '}, c="1"'],
    ["d", ""],
  ]);
  expect(sample?.value).toBe(5);
});

test("numbers may be infinite, none, negative or in exponents", () => {
  expect(values("m +Inf\nm -Inf\nm NaN\nm -1.5e-3\nm 0\nm{} 7")).toEqual([
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.NaN,
    -0.0015,
    0,
    7,
  ]);
});

test.each(["<!doctype html>", "m", "m x", 'm{a="1} 2', "m{a=1} 2", 'm{a="1" b="2"} 3', "1m 2", "m 1 2 3"])(
  "what is no sample is told with its line: %s",
  (line) => {
    expect(() => parse(`ok 1\n${line}`)).toThrow(/Line 2/);
  },
);

test("comments, empty lines and unknown kinds are passed over", () => {
  expect(values("# anything at all\n\n  \n# TYPE m mystery\n# EOF\nm 1")).toEqual([1]);
});
