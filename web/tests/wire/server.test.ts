// @vitest-environment jsdom
import { expect, test } from "vitest";
import { Server } from "../../src/wire/server";

const HANDLERS = { onEvent: () => {}, onDown: () => {}, onState: () => {} };

test("addresses are those of the page, under whatever path it lies", () => {
  expect(new Server("https://host/some/path/").url("v1/models")).toBe("https://host/some/path/v1/models");
});

test("a key goes into the headers and to new links, and without one there is no header", () => {
  const server = new Server("http://host/");
  expect([server.headers, server.link(HANDLERS).key]).toEqual([{}, ""]);
  server.key.value = "k-1";
  expect(server.headers).toEqual({ authorization: "Bearer k-1" });
  expect(server.link(HANDLERS).key).toBe("k-1");
});
