// Which view is shown: the part of the address behind "#/", so that views can be linked to and "back" works.

import { effect, type Signal, signal } from "@preact/signals";

/** views: their titles by name, which stand before the document's own in the tab and in the browser's history. */
export function routeSignal<Name extends string>(
  views: Readonly<Record<Name, string>>,
  first: NoInfer<Name>,
): Signal<Name> {
  const names = Object.keys(views) as Name[];
  const named = () => names.find((name) => location.hash === `#/${name}`) ?? first;
  const route = signal(named());
  const { title } = document;
  addEventListener("hashchange", () => {
    route.value = named();
  });
  effect(() => {
    document.title = `${views[route.value]} · ${title}`;
  });
  return route;
}
