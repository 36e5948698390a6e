// A part of the page that cannot be drawn leaves a sentence and a way on where it stood, and the other parts as they are.

import { Component, type ComponentChildren } from "preact";

interface BoundaryProps {
  /** What it shows: a fault with one thing does not keep others from being shown. */
  about?: unknown;
  children: ComponentChildren;
}

export class Boundary extends Component<BoundaryProps, { fault: { about: unknown } | null }> {
  override state: { fault: { about: unknown } | null } = { fault: null };

  override componentDidCatch(error: unknown): void {
    console.error(error); // for whoever reports it
    this.setState({ fault: { about: this.props.about } });
  }

  override render({ about, children }: BoundaryProps) {
    const { fault } = this.state;
    if (fault === null || fault.about !== about) return children;
    return (
      <div class="bar" role="alert">
        <p>This part of the page met a fault; what was said is kept. Reload the page to go on.</p>
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </div>
    );
  }
}
