// Wide code and tables scroll inside themselves, and can then be reached by keyboard.

export class Scrollers {
  #sizes: ResizeObserver | null = null;

  /** Keeps an eye on an element with the class `md-scroll`, a role, a label and one child, which is as wide as what it shows. */
  add(element: HTMLElement): void {
    this.#sizes ??= new ResizeObserver((entries) => {
      for (const { target } of entries) {
        const scroller = target.closest(".md-scroll");
        if (scroller instanceof HTMLElement) reach(scroller);
      }
    });
    this.#sizes.observe(element);
    if (element.firstElementChild) this.#sizes.observe(element.firstElementChild);
  }

  /** Forgets all of them. */
  end(): void {
    this.#sizes?.disconnect();
  }
}

function reach(element: HTMLElement): void {
  const wide = element.scrollWidth > element.clientWidth;
  if (wide === element.hasAttribute("tabindex")) return;
  if (wide) element.tabIndex = 0;
  else element.removeAttribute("tabindex");
}
