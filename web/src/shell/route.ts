// Which view is shown: the part of the address behind "#/", so that views can be linked to and "back" works.

import { type Signal, signal } from "@preact/signals";

export function routeSignal<Name extends string>(names: readonly Name[], first: Name): Signal<Name> {
  const named = () => names.find((name) => location.hash === `#/${name}`) ?? first;
  const route = signal(named());
  addEventListener("hashchange", () => {
    route.value = named();
  });
  return route;
}
