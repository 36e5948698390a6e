// Who may guess for the chat's replies, and in how large trees.

import { useEffect, useState } from "preact/hooks";
import type { FormValues } from "../settings/parse";
import { AUTO, askDrafters, drafterName, draftersOf } from "../wire/drafters";
import type { Server } from "../wire/server";

export interface DrafterProps {
  server: Pick<Server, "url" | "headers" | "key">;
  values: FormValues;
  choose(drafter: string): void;
}

/** Those that the server has, and the chosen one whether it has it or not. */
export function Drafter({ server, values, choose }: DrafterProps) {
  const [known, learn] = useState(draftersOf(null));
  const key = server.key.value; // another one may open what was locked
  useEffect(() => {
    let wanted = true;
    void askDrafters(server).then((found) => found && wanted && learn(found));
    return () => {
      wanted = false;
    };
  }, [server, key]);
  const chosen = values.drafter || AUTO;
  return (
    <div class="chat-field">
      <label for="drafter">Drafter</label>
      <select
        id="drafter"
        value={chosen}
        aria-describedby="drafter-help"
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      >
        {[...new Set([...known, chosen])].map((name) => (
          <option key={name} value={name}>
            {drafterName(name)}
          </option>
        ))}
      </select>
      <p class="chat-small" id="drafter-help">
        Changes the speed of the chat’s replies and never their text.
      </p>
    </div>
  );
}
