// A screen whose only property changes when the test says so, in place of the one that jsdom does not have.

import { vi } from "vitest";

export class Screen extends EventTarget {
  matches = false;

  constructor() {
    super();
    vi.stubGlobal("matchMedia", () => this);
  }

  become(matches: boolean): void {
    this.matches = matches;
    this.dispatchEvent(new Event("change"));
  }
}
