// When a connection may have been lost without a word, or may be had again.

/** Calls `check` when the network comes or goes and when the page is seen again, as after a phone's sleep. Returns what ends that. */
export function onWaking(check: () => void): () => void {
  const seen = () => {
    if (document.visibilityState === "visible") check();
  };
  addEventListener("online", check);
  addEventListener("offline", check);
  document.addEventListener("visibilitychange", seen);
  return () => {
    removeEventListener("online", check);
    removeEventListener("offline", check);
    document.removeEventListener("visibilitychange", seen);
  };
}
