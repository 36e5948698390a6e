// Prometheus' text exposition format, version 0.0.4, as prometheus_client prints it.

export type Kind = "counter" | "gauge" | "histogram" | "summary" | "untyped";

export interface Sample {
  /** The family's name, or with "_bucket", "_sum" or "_count" behind it. */
  name: string;
  labels: ReadonlyMap<string, string>;
  /** NaN and the infinities are legal. */
  value: number;
}

export interface Family {
  name: string;
  kind: Kind;
  samples: Sample[];
}

const KINDS: readonly string[] = ["counter", "gauge", "histogram", "summary", "untyped"] satisfies Kind[];
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\}|\s)\s*(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)/y;
const PARTS = ["_bucket", "_sum", "_count"];
const ODD_NUMBERS: ReadonlyMap<string, number> = new Map([
  ["+Inf", Number.POSITIVE_INFINITY],
  ["Inf", Number.POSITIVE_INFINITY],
  ["-Inf", Number.NEGATIVE_INFINITY],
  ["NaN", Number.NaN],
]);

/** Families by name, in the order they came. Throws SyntaxError, with the line's number, for a line it cannot read. */
export function parse(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  let last: Family | undefined;
  const family = (name: string, kind: Kind): Family => {
    const found = families.get(name) ?? { name, kind, samples: [] };
    families.set(name, found);
    return found;
  };
  for (const [index, line] of text.split("\n").entries()) {
    if (line.startsWith("#")) {
      const [, word, name, kind = ""] = line.split(/\s+/);
      if (word === "TYPE" && name && KINDS.includes(kind)) last = family(name, kind as Kind);
      continue;
    }
    if (line.trim() === "") continue;
    const sample = readSample(line);
    if (sample === null) throw new SyntaxError(`Line ${index + 1} is no sample.`);
    const owner = last && belongs(sample.name, last) ? last : family(sample.name, "untyped");
    owner.samples.push(sample);
  }
  return families;
}

function belongs(name: string, { name: family, kind }: Family): boolean {
  if (name === family) return true;
  return (
    (kind === "histogram" || kind === "summary") && name.startsWith(family) && PARTS.includes(name.slice(family.length))
  );
}

function readSample(line: string): Sample | null {
  const [, name, inside = "", digits] = SAMPLE.exec(line) ?? [];
  if (name === undefined || digits === undefined) return null;
  const labels = readLabels(inside);
  const value = ODD_NUMBERS.get(digits) ?? Number(digits);
  const isNumber = !Number.isNaN(value) || digits === "NaN";
  return labels !== null && isNumber ? { name, labels, value } : null;
}

function readLabels(inside: string): Map<string, string> | null {
  const labels = new Map<string, string>();
  let at = 0;
  while (at < inside.length) {
    LABEL.lastIndex = at;
    const [whole, name, value] = LABEL.exec(inside) ?? [];
    if (whole === undefined || name === undefined || value === undefined) return null;
    labels.set(name, unescaped(value));
    at += whole.length;
  }
  return labels;
}

function unescaped(value: string): string {
  return value.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}
