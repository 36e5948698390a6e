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
} satisfies Record<string, Bounds>;

type NumberField = keyof typeof BOUNDS;

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

/**
 * Form values as request settings. An empty seed is drawn here and not by the server, so that the page can show it and
 * any reply can be made again.
 */
export function parse(values: FormValues, drawSeed: () => number): Settings | Problem {
  const parsed = {} as Record<NumberField, number | null>;
  for (const field of Object.keys(BOUNDS) as NumberField[]) {
    try {
      parsed[field] = number(values[field], BOUNDS[field]);
    } catch (error) {
      return { field, sentence: (error as RangeError).message };
    }
  }
  const { seed, ...rest } = parsed;
  return {
    ...rest,
    seed: seed ?? drawSeed(),
    instructions: values.instructions.trim(),
    speculation: values.speculation,
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
