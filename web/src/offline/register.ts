// Puts the service worker to work once the page is up.

/** The name by which the server's content policy lets this file name a script (server/page.py). */
const POLICY = "paceline-worker";
const SCRIPT = "sw.js";

/** What a browser with Trusted Types offers; what a policy makes is used as if it were the string. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(text: string): string },
  ): { createScriptURL(text: string): string };
}

/**
 * Registers the service worker of a built page when everything else is loaded. Where a browser has none, forbids it,
 * or the page came over plain HTTP from another machine, the page works as before but does not open offline.
 */
export function keepForOffline(base: string): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
  const begin = () => register(new URL(SCRIPT, base).href).catch(() => undefined);
  if (document.readyState === "complete") begin();
  else addEventListener("load", begin, { once: true });
}

async function register(script: string): Promise<void> {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy(POLICY, { createScriptURL: () => script }); // vouches for this one alone
  await navigator.serviceWorker.register(policy?.createScriptURL("") ?? script);
}
