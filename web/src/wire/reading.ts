// What came over the socket, field by field: whatever is not of its type is as good as not there, so that whoever reads an
// event can rely on its types, no matter who sent it.

import type { Fault, ResponseBody, ServerEvent, Spec, Step, StepTree, Usage } from "./events";

/** undefined: it is not what it should be. */
type Read<T> = (value: unknown) => T | undefined;
type Fields<T> = { [Name in keyof T]-?: Read<Exclude<T[Name], undefined>> };

const MOST_TOKENS = 256; // of one step: a server verifies up to 64 guesses
const LONGEST_NAME = 200; // characters of what names a drafter

const text: Read<string> = (value) => (typeof value === "string" ? value : undefined);
const name: Read<string> = (value) => text(value)?.slice(0, LONGEST_NAME);
const within = (low: number, value: unknown) =>
  typeof value === "number" && value >= low && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
const amount: Read<number> = (value) => within(0, value);
const whole = (low: number, value: unknown) => (Number.isInteger(value) ? within(low, value) : undefined);
const count: Read<number> = (value) => whole(0, value);
const orNull =
  <T>(read: Read<T>): Read<T | null> =>
  (value) =>
    read(value) ?? null;

/** Every item has to be sound. */
const list =
  <T>(item: Read<T>, most = Number.POSITIVE_INFINITY): Read<T[]> =>
  (value) => {
    if (!Array.isArray(value) || value.length > most) return undefined;
    const items = sound(item)(value) ?? [];
    return items.length === value.length ? items : undefined;
  };

/** The items that are sound. */
const sound =
  <T>(item: Read<T>): Read<T[]> =>
  (value) =>
    Array.isArray(value) ? value.map(item).filter((read) => read !== undefined) : undefined;

/** The fields that are sound. */
const some =
  <T extends object>(fields: Fields<T>): Read<Partial<T>> =>
  (value) => {
    if (typeof value !== "object" || value === null) return undefined;
    const read: Partial<T> = {};
    for (const key of Object.keys(fields) as (keyof T)[]) {
      const field = Object.hasOwn(value, key) ? fields[key]((value as T)[key]) : undefined;
      if (field !== undefined) read[key] = field;
    }
    return read;
  };

/** Every field has to be there and sound. */
const all =
  <T extends object>(fields: Fields<T>): Read<T> =>
  (value) => {
    const read = some(fields)(value);
    return read && Object.keys(fields).every((key) => key in read) ? (read as T) : undefined;
  };

const span: Read<[number, string]> = (value) => {
  const [length, source] = Array.isArray(value) ? [count(value[0]), name(value[1])] : [];
  return length === undefined || source === undefined ? undefined : [length, source];
};

const tree = all<StepTree>({
  texts: list(text),
  parents: list((value) => whole(-1, value)),
  sources: list(name),
  estimates: list(amount),
  chances: list(amount),
  path: list(count),
});

const measured = all<Omit<Step, "reason" | "tree">>({
  ms: amount,
  nodes: count,
  drafted: count,
  accepted: count,
  emitted: count,
  tokens: list(all({ text, source: name }), MOST_TOKENS),
});
const told = some<Pick<Step, "reason" | "tree">>({ reason: orNull(text), tree: orNull(tree) });

const step: Read<Step> = (value) => {
  const figures = measured(value);
  return figures && { reason: null, tree: null, ...figures, ...told(value) };
};

const spec: Read<Spec> = (value) => {
  const read = some<Spec>({
    drafted: count,
    accepted: count,
    emitted: count,
    input_tokens: count,
    cached_tokens: count,
    steps: sound(step),
    spans: list(span),
  })(value);
  return read && { drafted: 0, accepted: 0, emitted: 0, ...read };
};

const usage = some<Usage>({
  input_tokens: count,
  output_tokens: count,
  input_token_details: some({ cached_tokens: count }),
});

const fault = some<Fault>({ message: text, code: text, event_id: text });

const STATUSES: readonly ResponseBody["status"][] = ["in_progress", "completed", "cancelled", "failed", "incomplete"];

const response = some<ResponseBody>({
  id: text,
  status: (value) => STATUSES.find((status) => status === value),
  status_details: some({ error: fault }),
  usage,
});

const event = some<ServerEvent>({
  type: text,
  session: some({ model: text }),
  response,
  response_id: text,
  item_id: text,
  item: some({ id: text }),
  delta: text,
  x_seq: count,
  x_spec: spec,
  tokens: count,
  cached_tokens: count,
  text_end: count,
  end: count,
  error: fault,
});

/** One message as an event; null where it is none. */
export function readEvent(data: unknown): ServerEvent | null {
  try {
    const { type, ...fields } = event(JSON.parse(String(data))) ?? {};
    return type === undefined ? null : { type, ...fields };
  } catch {
    return null;
  }
}
