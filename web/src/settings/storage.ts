// Small things remembered between visits. Storage that is full or forbidden only means that nothing is remembered.

type Values = Record<string, unknown>;

/** storage: asked for late, since the browser may throw already there. */
export function remember(storage: () => Storage, name: string, values: Values): void {
  try {
    storage().setItem(`paceline.${name}`, JSON.stringify(values));
  } catch {
    // a private window: carry on without
  }
}

export function recall(storage: () => Storage, name: string): Values {
  try {
    const values: unknown = JSON.parse(storage().getItem(`paceline.${name}`) ?? "null");
    return values !== null && typeof values === "object" ? (values as Values) : {};
  } catch {
    return {};
  }
}
