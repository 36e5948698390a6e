// Figures in the few characters a person reads at a glance.

const NONE = "–";

export function milliseconds(value: number | null): string {
  if (value === null) return NONE;
  if (value >= 9950) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 999.5) return `${(value / 1000).toFixed(2)} s`;
  return `${value.toFixed(value < 99.95 ? 1 : 0)} ms`;
}

export function decimal(value: number | null): string {
  return value === null ? NONE : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** Only all of it is 100 %, and only nothing is 0 %. */
export function percent(value: number | null): string {
  if (value === null) return NONE;
  const shown = Math.round(value * 100);
  if ((shown === 0 && value > 0) || (shown === 100 && value < 1)) {
    return `${Math.min(99.9, Math.max(0.1, value * 100)).toFixed(1)} %`;
  }
  return `${shown} %`;
}

/** A count or another number without decimals. */
export function whole(value: number | null): string {
  return value === null ? NONE : Math.round(value).toLocaleString("en");
}

/** A count with its noun. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** Of what `of` says of each; null where there is none. */
export function mean<T>(items: readonly T[], of: (item: T) => number): number | null {
  return items.length === 0 ? null : items.reduce((sum, item) => sum + of(item), 0) / items.length;
}
