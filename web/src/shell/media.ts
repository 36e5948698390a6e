// What the person's system asks for, followed as it changes.

import { useEffect, useMemo, useState } from "preact/hooks";

export const LITTLE_MOTION = "(prefers-reduced-motion: reduce)";

/** Whether a media query holds now. */
export function useMedia(query: string): boolean {
  const asked = useMemo(() => matchMedia(query), [query]);
  const [holds, set] = useState(asked.matches);
  useEffect(() => {
    const look = () => set(asked.matches);
    look(); // it may have changed since it was drawn
    asked.addEventListener("change", look);
    return () => asked.removeEventListener("change", look);
  }, [asked]);
  return holds;
}
