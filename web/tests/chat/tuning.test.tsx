// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { responseCreate } from "../../src/chat/requests";
import { Drafter } from "../../src/chat/tuning";
import { Server } from "../../src/wire/server";
import { SETTINGS, VALUES } from "./talk";

afterEach(() => vi.unstubAllGlobals());

test("the server's drafters are offered, and the chosen one even where it is none of them", async () => {
  vi.stubGlobal("fetch", async () => Response.json({ data: [{ speculators: ["auto", "suffix", "none"] }] }));
  const root = document.body.appendChild(document.createElement("div"));
  const chosen: string[] = [];
  const server = new Server("http://localhost/");
  const values = { ...VALUES, drafter: "medusa" };
  const select = () => root.querySelector("select") as HTMLSelectElement;
  const offered = () => [...select().options].map(({ value }) => value);
  act(() => render(<Drafter {...{ server, values }} choose={(name) => chosen.push(name)} />, root));
  expect([select().value, offered()]).toEqual(["medusa", ["auto", "medusa"]]);
  await vi.waitFor(() => expect(offered()).toEqual(["auto", "suffix", "medusa"]));
  act(() => {
    select().value = "suffix";
    select().dispatchEvent(new Event("change"));
  });
  expect(chosen).toEqual(["suffix"]);
});

test("they are asked for again with a key that opens what was locked", async () => {
  const answer = () =>
    server.key.value ? Response.json({ data: [{ speculators: ["medusa"] }] }) : new Response("", { status: 401 });
  vi.stubGlobal("fetch", async () => answer());
  const server = new Server("http://localhost/");
  const root = document.body.appendChild(document.createElement("div"));
  act(() => render(<Drafter {...{ server, values: VALUES }} choose={() => {}} />, root));
  act(() => server.setKey("a-key"));
  await vi.waitFor(() =>
    expect([...root.querySelectorAll("option")].map(({ value }) => value)).toEqual(["auto", "medusa"]),
  );
});

test("they are asked for with each reply", () => {
  const speculation = (more: object) => {
    const { response } = responseCreate({ ...SETTINGS, ...more }) as unknown as { response: { speculation: object } };
    return response.speculation;
  };
  expect(speculation({})).toEqual({ mode: "auto", trace: true });
  expect(speculation({ drafter: "suffix", maxNodes: 8 })).toEqual({ mode: "suffix", max_nodes: 8, trace: true });
  expect(speculation({ drafter: "suffix", maxNodes: 8, speculation: false })).toEqual({ mode: "none", trace: true });
});
