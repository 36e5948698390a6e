// Who answers the page's own requests, the server or what was kept of it.

/** How a request is answered: not by us at all, from what was kept, or from the server as long as it answers. */
export type Way = "leave" | "kept" | "fresh";

/** The part of a request that decides. `navigates`: the browser asks for a document to show. */
export interface Asked {
  method: string;
  url: string;
  navigates: boolean;
}

/** The files of the page, as addresses relative to `base`; "" is the document. */
export interface Shell {
  base: string;
  files: readonly string[];
}

/** How the names of this page's caches begin: a proxy may have other pages under other paths of the same origin. */
export function cachePrefix(base: string): string {
  return `paceline-page ${new URL(base).pathname} `;
}

const HASHED = /^assets\//; // Vite's folder for files whose names carry a hash: they never change

/** The name of a file of the page; null: not a file of the page, so none of our business. */
function fileOf(asked: Asked, shell: Shell): string | null {
  const url = new URL(asked.url);
  const base = new URL(shell.base);
  if (asked.method !== "GET" || url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) return null;
  const name = url.pathname.slice(base.pathname.length);
  return shell.files.includes(name) && (name === "") === asked.navigates ? name : null;
}

export function wayOf(asked: Asked, shell: Shell): Way {
  const file = fileOf(asked, shell);
  if (file === null) return "leave";
  return HASHED.test(file) ? "kept" : "fresh";
}

/**
 * The server's answer, or the kept one where the server is away, overloaded (5xx, as from a proxy before it) or
 * silent for `patience` ms. Without a kept one it is waited for. Rejects when there is neither.
 */
export async function freshOrKept(
  ask: () => Promise<Response>,
  kept: () => Promise<Response | undefined>,
  patience: number,
): Promise<Response> {
  const answer = ask();
  const heard = answer.then(
    (response) => (response.status < 500 ? response : undefined),
    () => undefined,
  );
  const silence = new Promise<undefined>((resolve) => setTimeout(resolve, patience));
  return (await Promise.race([heard, silence])) ?? (await kept()) ?? answer;
}
