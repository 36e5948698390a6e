// The service worker: the page opens when the server is away, so that kept conversations can be read.
//
// What is kept is one whole version of the page, put there at once when the worker is installed and never mixed with
// another. A new version waits until no tab uses the old one; until then the server is asked first anyway.

/// <reference lib="webworker" />

import { cachePrefix, freshOrKept, type Shell, wayOf } from "./answers";

declare const self: ServiceWorkerGlobalScope;
/** Put in by the build: the page's files, and a name that changes with them. */
declare const PAGE: { files: string[]; version: string };

const PATIENCE_MS = 2000;
const page = PAGE;
const shell: Shell = { base: self.registration.scope, files: page.files };
const mine = cachePrefix(shell.base);
const cacheName = mine + page.version;

async function keep(): Promise<void> {
  const cache = await caches.open(cacheName);
  await cache.addAll(shell.files.map((file) => new URL(file, shell.base).href));
}

async function forgetOthers(): Promise<void> {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith(mine) && name !== cacheName);
  await Promise.all(old.map((name) => caches.delete(name)));
}

async function kept(request: Request): Promise<Response | undefined> {
  const cache = await caches.open(cacheName);
  return cache.match(request, { ignoreSearch: true, ignoreVary: true });
}

self.addEventListener("install", (event) => event.waitUntil(keep()));
self.addEventListener("activate", (event) => event.waitUntil(forgetOthers()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const way = wayOf({ method: request.method, url: request.url, navigates: request.mode === "navigate" }, shell);
  if (way === "kept") event.respondWith(kept(request).then((response) => response ?? fetch(request)));
  if (way === "fresh") {
    event.respondWith(
      freshOrKept(
        () => fetch(request),
        () => kept(request),
        PATIENCE_MS,
      ),
    );
  }
});
