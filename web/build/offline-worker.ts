/** Builds the service worker, which must know the names that the build gave to the page's files. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin, type Rolldown } from "vite";

const NAME = "sw.js"; // stable: browsers look for a new worker at the address of the old one

/** A plugin that adds `sw.js`, made from the module at `entry`, to what is built. */
export function offlineWorker(entry: string): Plugin {
  let publicDir = "";
  return {
    name: "paceline-offline-worker",
    apply: "build",
    configResolved(config) {
      publicDir = config.publicDir;
    },
    generateBundle: {
      order: "post",
      async handler(_, bundle) {
        const page = describe(bundle, publicDir);
        this.emitFile({ type: "asset", fileName: NAME, source: await bundled(entry, page) });
      },
    },
  };
}

interface Page {
  /** Addresses relative to the page's own, which is "". */
  files: string[];
  /** Another one as soon as a single byte of the page is another one. */
  version: string;
}

function describe(bundle: Rolldown.OutputBundle, publicDir: string): Page {
  const contents = new Map<string, string | Uint8Array>();
  for (const part of Object.values(bundle)) {
    contents.set(part.fileName, part.type === "chunk" ? part.code : part.source);
  }
  for (const name of readdirSync(publicDir)) contents.set(name, readFileSync(join(publicDir, name)));
  const names = [...contents.keys()].sort();
  const hash = createHash("sha256");
  for (const name of names) hash.update(`${name}\n`).update(contents.get(name) ?? "");
  return {
    files: names.map((name) => (name === "index.html" ? "" : name)),
    version: hash.digest("hex").slice(0, 16),
  };
}

/** One script that imports nothing: not every browser takes modules for service workers. */
async function bundled(entry: string, page: Page): Promise<string> {
  const output = await build({
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    define: { PAGE: JSON.stringify(page) },
    build: { write: false, target: "es2022", rolldownOptions: { input: entry, output: { format: "iife" } } },
  });
  const [only] = "output" in output ? output.output : [];
  if (only?.type !== "chunk") throw new Error("The service worker did not become one script.");
  return only.code;
}
