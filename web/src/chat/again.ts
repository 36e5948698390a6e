// Whether another reply can be another one.

import type { Settings } from "../settings/parse";
import type { Turn } from "./turns";

/** Why a reply that is asked for with `settings` in place of `reply` will be the same; "" where it may be another. */
export function sameAgain(reply: Turn | null, settings: Settings): string {
  if (!reply?.settings || reply.state === "failed" || reply.state === "interrupted") return "";
  const greedy = settings.temperature === 0;
  if (telling(reply.settings, greedy) !== telling(settings, greedy)) return "";
  return greedy
    ? "At temperature 0 it will be the same one; raise the temperature in the settings for another."
    : "With the same seed it will be the same one; empty the seed in the settings for another.";
}

/** What the text depends on: speculation changes none of it, and a seed nothing where the likeliest token is taken. */
function telling({ speculation: _, drafter: __, maxNodes: ___, seed, ...settings }: Settings, greedy: boolean): string {
  return JSON.stringify(greedy ? settings : { ...settings, seed });
}
