// Who a token comes from, as the page tells it: a colour, a form of line under it, and words. Drafters that the page does not
// know share one colour and form.

/** Keys of the colours --origin-… and of the classes spec-…; `unknown` has no colour of its own. */
export type OriginKey = "model" | Drafter | "other" | "unknown";
type Drafter = "suffix" | "recurrent" | "medusa" | "hydra" | "eagle" | "draft" | "grammar";

export interface Origin {
  key: OriginKey;
  /** Several drafters had the same guess. */
  joint: boolean;
  /** In words: "suffix and recurrent", "the model itself". */
  label: string;
}

/** Drafters by the names that the server gives them, and how they guess. */
const DRAFTERS: Readonly<Record<Drafter, string>> = {
  suffix: "repeats earlier text",
  recurrent: "a small trained drafter",
  medusa: "trained heads, each a token further",
  hydra: "trained heads that know each other's guesses",
  eagle: "one trained layer that reads the model's states",
  draft: "a smaller model",
  grammar: "what the reply's format leaves no choice about",
};
const OWN = "no guess was accepted there";
const UNTOLD = "the server did not say whose";
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
  return { key: isKnown(first) ? first : "other", joint: names.length > 1, label: names.join(" and ") };
}

/** What the origins in these sources are, each told once: label and meaning. Drafters that the page does not know have none. */
export function meanings(sources: Iterable<string | null>): [label: string, meaning: string][] {
  const told = new Map<string, string>();
  for (const source of sources) {
    if (!source) told.set(originOf(source).label, source === null ? UNTOLD : OWN);
    for (const name of drafters(source ?? "")) {
      if (isKnown(name)) told.set(name, DRAFTERS[name]);
    }
  }
  return [...told];
}

function isKnown(name: string): name is Drafter {
  return Object.hasOwn(DRAFTERS, name);
}

/** A source in at most eleven characters: names cut short where there are several, and counted where there are many. */
export function shortSource(source: string): string {
  const names = drafters(source);
  if (names.length < 2) return source.slice(0, 9);
  const told = names.slice(0, names.length > 3 ? 2 : 3).map((name) => name.slice(0, 3));
  return [...told, ...(names.length > 3 ? [names.length - 2] : [])].join("+");
}
