import { expect, test } from "vitest";
import { csv } from "../../src/dashboard/csv";
import { parse } from "../../src/dashboard/prometheus";
import { Scrapes } from "./scrapes";

test("a line for each scrape, a column for each series, in fields that other programs read", () => {
  const scrapes = new Scrapes().take(0, { c_total: 3, g: 1 });
  scrapes.history.push(
    1.5,
    parse('# TYPE c_total counter\nc_total 1\n# TYPE r_total counter\nr_total{a="x,\\"y",b="2"} 5'),
  );
  expect(csv(scrapes.history)).toBe(
    'time,c_total,g,"r_total{a=""x,\\""y"",b=""2""}"\r\n' +
      "1970-01-01T00:00:00.000Z,3,1,0\r\n" +
      "1970-01-01T00:00:01.500Z,4,,5\r\n",
  );
});
