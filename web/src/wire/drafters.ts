// Which drafters a server has, from what it says of its model.

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
