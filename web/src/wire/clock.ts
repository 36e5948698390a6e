// Time, handed in so that tests need not wait for it.

export interface Clock {
  /** Milliseconds, counting up. */
  now(): number;
  /** Runs `what` once, `ms` from now, unless the returned function is called first. */
  after(ms: number, what: () => void): () => void;
}

export const PAGE_CLOCK: Clock = {
  now: () => performance.now(),
  after(ms, what) {
    const timer = setTimeout(what, ms);
    return () => clearTimeout(timer);
  },
};
