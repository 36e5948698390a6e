// Which drafters a server has, from what it says of its model.

import type { Server } from "./server";

export const AUTO = "auto";
const NOBODY = "none"; // a race against oneself
const MOST = 32;

/** body: the answer to GET /v1/models, from outside. "auto", for all of them together, is always there and first. */
export function draftersOf(body: unknown): string[] {
  const model = (body as { data?: { speculators?: unknown }[] } | null)?.data?.[0];
  const named = Array.isArray(model?.speculators) ? model.speculators : [];
  const names = named.filter((name): name is string => typeof name === "string" && name !== "");
  return [AUTO, ...new Set(names.filter((name) => name !== AUTO && name !== NOBODY))].slice(0, MOST);
}

/** null: the server is away or locked, which whoever asks it for a reply will say. */
export async function askDrafters(server: Pick<Server, "url" | "headers">): Promise<string[] | null> {
  try {
    const answer = await fetch(server.url("v1/models"), { headers: server.headers, cache: "no-store" });
    return answer.ok ? draftersOf(await answer.json()) : null;
  } catch {
    return null;
  }
}

/** As people choose it. */
export function drafterName(name: string): string {
  return name === AUTO ? "all (auto)" : name;
}
