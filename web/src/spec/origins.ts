// Who a token comes from, as the page tells it: a colour, a form of line under it, and words.

/** Keys of the colours --origin-… and of the classes spec-…; `unknown` has no colour of its own. */
export type OriginKey = "model" | "suffix" | "recurrent" | "medusa" | "draft" | "other" | "unknown";

export interface Origin {
  key: OriginKey;
  /** Several drafters had the same guess. */
  joint: boolean;
  /** In words: "suffix and recurrent", "the model itself". */
  label: string;
}

const KEYS: Readonly<Record<string, OriginKey>> = {
  suffix: "suffix",
  ngram: "suffix",
  recurrent: "recurrent",
  medusa: "medusa",
  draft: "draft",
};
const UNKNOWN: Origin = { key: "unknown", joint: false, label: "unknown" };
const MODEL: Origin = { key: "model", joint: false, label: "the model itself" };

/** The drafters named by a source. */
export function drafters(source: string): string[] {
  return source.split("+").filter((name) => name !== "");
}

/** source: drafters joined by "+", "" for the model's own token, null where nobody told. The first one gives the colour. */
export function originOf(source: string | null): Origin {
  if (source === null) return UNKNOWN;
  const names = drafters(source);
  const [first] = names;
  if (first === undefined) return MODEL;
  const key = Object.hasOwn(KEYS, first) ? KEYS[first] : undefined;
  return { key: key ?? "other", joint: names.length > 1, label: names.join(" and ") };
}

/** A source in few characters: each name cut short where there are several. */
export function shortSource(source: string): string {
  const names = drafters(source);
  return names.length > 1 ? names.map((name) => name.slice(0, 3)).join("+") : source.slice(0, 9);
}
