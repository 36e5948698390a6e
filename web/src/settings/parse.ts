// What the person set, checked here so that a slip is named beside its field and never becomes a refused request.

const LARGEST_SEED = Number.MAX_SAFE_INTEGER; // larger seeds exist, but JSON numbers in a browser stop being exact here

/** The form as it stands: texts of fields, states of switches. */
export interface FormValues {
  instructions: string;
  temperature: string;
  seed: string;
  maxTokens: string;
  topP: string;
  topK: string;
  minP: string;
  repetitionPenalty: string;
  speculation: boolean;
  /** The drafter that may guess, as the server names it; "" or left out: all that it has. */
  drafter?: string;
  maxNodes?: string;
}

/** What a request is made of; null: the server decides. */
export interface Settings {
  instructions: string;
  temperature: number | null;
  seed: number;
  maxTokens: number | null;
  topP: number | null;
  topK: number | null;
  minP: number | null;
  repetitionPenalty: number | null;
  speculation: boolean;
  /** "": all that the server has. */
  drafter: string;
  /** Rows that a step may verify, the root included. */
  maxNodes: number | null;
}

export interface Problem {
  field: keyof FormValues;
  sentence: string;
}

/** Of a number that a person may type. */
export interface Bounds {
  name: string;
  low: number;
  high: number;
  whole?: boolean;
}

const BOUNDS = {
  temperature: { name: "temperature", low: 0, high: 2 },
  seed: { name: "seed", low: 0, high: LARGEST_SEED, whole: true },
  maxTokens: { name: "longest reply", low: 1, high: 1_000_000, whole: true },
  topP: { name: "top-p", low: 0.01, high: 1 },
  topK: { name: "top-k", low: 0, high: 1_000_000, whole: true },
  minP: { name: "min-p", low: 0, high: 1 },
  repetitionPenalty: { name: "repetition penalty", low: 0.01, high: 100 },
  maxNodes: { name: "largest tree", low: 1, high: 64, whole: true }, // the most a tree can have on any server
} satisfies Record<string, Bounds>;

export type NumberField = keyof typeof BOUNDS;

/** null: nothing was typed. Throws a RangeError whose message is a sentence for the person. */
export function number(text: string, { name, low, high, whole = false }: Bounds): number | null {
  if (text.trim() === "") return null;
  const value = Number(text);
  if (!(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
    const kind = whole ? "whole number" : "number";
    throw new RangeError(`The ${name} must be a ${kind} from ${low} to ${high}; change it or leave it empty.`);
  }
  return value;
}

/** What is wrong with a field, as a sentence; "" where it can be taken. */
export function slip(field: NumberField, text: string): string {
  try {
    number(text, BOUNDS[field]);
    return "";
  } catch (error) {
    return (error as RangeError).message;
  }
}

/**
 * Form values as request settings. An empty seed is drawn here and not by the server, so that the page can show it and
 * any reply can be made again.
 */
export function parse(values: FormValues, drawSeed: () => number): Settings | Problem {
  const parsed = {} as Record<NumberField, number | null>;
  for (const field of Object.keys(BOUNDS) as NumberField[]) {
    const text = values[field] ?? "";
    const sentence = slip(field, text);
    if (sentence !== "") return { field, sentence };
    parsed[field] = number(text, BOUNDS[field]);
  }
  const { seed, ...rest } = parsed;
  return {
    ...rest,
    seed: seed ?? drawSeed(),
    instructions: values.instructions.trim(),
    speculation: values.speculation,
    drafter: values.drafter ?? "",
  };
}

export function isProblem(parsed: Settings | Problem): parsed is Problem {
  return "sentence" in parsed;
}

export function drawSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

/** The sampling fields of `response.create`; what is null is left to the server. */
export function samplingBody(settings: Settings): Record<string, unknown> {
  const named = {
    temperature: settings.temperature,
    seed: settings.seed,
    max_output_tokens: settings.maxTokens,
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    repetition_penalty: settings.repetitionPenalty,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== null));
}
