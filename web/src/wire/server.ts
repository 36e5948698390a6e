// The Paceline server this page came from: its addresses, and the key that opens them.

import { type Signal, signal } from "@preact/signals";
import { Link, type LinkOptions } from "./link";

export class Server {
  readonly key: Signal<string>;
  /** The served model's name; "" until a session told it. */
  readonly model: Signal<string> = signal("");
  readonly #base: string;

  /** base: the page's own address. key: "" for none. */
  constructor(base: string, key: Signal<string> = signal("")) {
    this.#base = base;
    this.key = key;
  }

  url(path: string): string {
    return new URL(path, this.#base).href;
  }

  /** Of an ordinary request. */
  get headers(): Record<string, string> {
    return this.key.value ? { authorization: `Bearer ${this.key.value}` } : {};
  }

  setKey(key: string): void {
    this.key.value = key;
  }

  /** A realtime link that is not opened yet: `renew` does. */
  link(handlers: Pick<LinkOptions, "onEvent" | "onDown" | "onState">): Link {
    const url = new URL("v1/realtime?model=default", this.#base);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const [probe, secrets] = [this.url("v1/models"), this.url("v1/realtime/client_secrets")];
    return new Link({ url: url.href, probe, secrets, key: this.key.value, ...handlers });
  }
}
