// The keys, in a dialog of the browser's own: it keeps the focus, and Esc closes it.

import { Fragment } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { PLACED, SHORTCUTS } from "./shortcuts";

export function Help({ open, close }: { open: boolean; close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  // At once, for the next key may be the dialog's; and it closes by Esc before the page knows by its "close".
  useLayoutEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog id="help" class="chat-help" aria-labelledby="help-title" ref={dialog} onCancel={close} onClose={close}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {[...PLACED, ...SHORTCUTS].map(({ keys, what }) => (
          <div key={what}>
            <dt>
              {keys.map((key, i) => (
                <Fragment key={key}>
                  {i > 0 && "+"}
                  <kbd>{key}</kbd>
                </Fragment>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
