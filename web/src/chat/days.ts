// The days of the list: a heading for each, as people call it.

const DAY_MS = 86_400_000;

function midnight(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}

/** The local day of `at`, told at `now`, both in milliseconds since 1970. */
export function dayName(at: number, now: number): string {
  const days = Math.round((midnight(now) - midnight(at)) / DAY_MS); // a day may have 23 or 25 hours
  if (days <= 0) return "Today"; // another computer's clock may be ahead
  if (days === 1) return "Yesterday";
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now).getFullYear() ? undefined : ("numeric" as const);
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "long", ...(year && { year }) });
}

/** The entries by day, in the order they come in. */
export function byDay<T extends { at: number }>(entries: readonly T[], now: number): { day: string; entries: T[] }[] {
  const days: { day: string; entries: T[] }[] = [];
  for (const entry of entries) {
    const day = dayName(entry.at, now);
    const last = days.at(-1);
    if (last?.day === day) last.entries.push(entry);
    else days.push({ day, entries: [entry] });
  }
  return days;
}
