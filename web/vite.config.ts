/** How the page is built into dist/, which the server sends as it lies there. */

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { offlineWorker } from "./build/offline-worker.ts";

export default defineConfig({
  base: "./", // the page may stand behind a proxy, under any path
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [offlineWorker(fileURLToPath(new URL("src/offline/worker.ts", import.meta.url)))],
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // the content policy allows no data: but in images
    modulePreload: { polyfill: false },
    rollupOptions: { output: { entryFileNames: "assets/[name]-[hash].js" } },
  },
  // The development server passes the API on to a Paceline server.
  server: { proxy: { "/v1": { target: "http://127.0.0.1:8377", ws: true }, "/metrics": "http://127.0.0.1:8377" } },
  test: { include: ["tests/**/*.test.{ts,tsx}"] },
});
