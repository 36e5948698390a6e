// How long to wait before a server that is away is tried again.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/** Milliseconds before try `attempt` (from 0): doubling, capped, spread by up to a half so that tabs do not march together. */
export function backoff(attempt: number, random: () => number = Math.random): number {
  const full = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt);
  return Math.round(full * (1 - random() / 2));
}
