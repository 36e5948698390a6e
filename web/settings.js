// What the person set, checked here so that a slip is named beside its field and never becomes a refused request.

const LARGEST_SEED = Number.MAX_SAFE_INTEGER; // larger seeds exist, but JSON numbers in a browser stop being exact here

const FIELDS = [
  ["temperature", "temperature", 0, 2, false],
  ["seed", "seed", 0, LARGEST_SEED, true],
  ["maxTokens", "longest reply", 1, 1_000_000, true],
];

function number(text, name, low, high, whole) {
  if (text.trim() === "") return null;
  const value = Number(text);
  if (!(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
    throw new RangeError(`The ${name} must be a ${whole ? "whole " : ""}number from ${low} to ${high}; change it or leave it empty.`);
  }
  return value;
}

/**
 * Form values, all strings but the switches, as request settings. An empty seed is drawn here and not by the server, so
 * that the page can show it and any reply can be made again.
 *
 * Returns {settings, problem: null} or {settings: null, problem: {field, sentence}}.
 */
export function parse(values, drawSeed) {
  const settings = { instructions: values.instructions.trim(), speculation: values.speculation };
  for (const [field, name, low, high, whole] of FIELDS) {
    try {
      settings[field] = number(values[field], name, low, high, whole);
    } catch (error) {
      return { settings: null, problem: { field, sentence: error.message } };
    }
  }
  settings.seed ??= drawSeed();
  return { settings, problem: null };
}

export function drawSeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0];
}

const STORED = "paceline.settings";

/** Remembers a plain object between visits; storage that is full or forbidden only means that nothing is remembered. */
export function remember(storage, values) {
  try {
    storage().setItem(STORED, JSON.stringify(values));
  } catch {
    // a private window: carry on without
  }
}

export function recall(storage) {
  try {
    const values = JSON.parse(storage().getItem(STORED));
    return values !== null && typeof values === "object" ? values : {};
  } catch {
    return {};
  }
}
