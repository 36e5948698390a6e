/** How the page is built into dist/, which the server sends as it lies there. */

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { offlineWorker } from "./build/offline-worker.ts";

const API = ["/v1", "/metrics", "/health", "/ready", "/tokenize", "/detokenize"];
const SERVER = process.env.PACELINE_URL ?? "http://127.0.0.1:8377";

export default defineConfig({
  base: "./", // the page may stand behind a proxy, under any path
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [offlineWorker(fileURLToPath(new URL("src/offline/worker.ts", import.meta.url)))],
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // the content policy allows no data:
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: { entryFileNames: "assets/[name]-[hash].js" },
      checks: { bundlerTimings: false }, // a busy machine is no fault of the page
    },
  },
  // The development server passes the API on to a Paceline server, whose gate sees a page of its own host.
  server: { proxy: Object.fromEntries(API.map((path) => [path, { target: SERVER, ws: true }])) },
  test: {
    include: ["tests/**/*.test.{ts,tsx}"],
    testTimeout: 30_000, // long texts read many times, perhaps on a busy machine
  },
});
