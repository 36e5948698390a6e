// The page's colours for what is drawn on a canvas, which styles do not reach.

/** token: a custom property of the page's style, such as "--line". */
export function colour(token: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(token).trim();
}

/** Calls `changed` when light turns to dark or back, by the system or by hand. Returns what ends that. */
export function onThemeChange(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", changed);
    chosen.disconnect();
  };
}
