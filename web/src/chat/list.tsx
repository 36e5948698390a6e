// The kept conversations, to open, rename, download or remove.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Entry } from "./cabinet";
import type { Room } from "./room";

export interface ListProps {
  room: Room;
  /** A conversation was chosen. */
  chosen(): void;
  /** Saves the open conversation as a file. */
  exportAs(kind: "markdown" | "json"): void;
}

export function List({ room, chosen, exportAs }: ListProps) {
  room.shape.value;
  const { shelf } = room.records;
  const removed = shelf.removed.value;
  const empty = room.conversation.turns.length === 0;
  const panel = useRef<HTMLElement>(null);
  const undo = useRef<HTMLButtonElement>(null);
  const before = useRef(removed);
  useEffect(() => {
    if (before.current === removed) return;
    before.current = removed;
    (removed ? undo.current : panel.current)?.focus(); // the button that was pressed goes, and the focus with it
  }, [removed]);
  return (
    <aside id="conversations" class="chat-side" aria-label="Conversations" tabIndex={-1} ref={panel}>
      {shelf.entries.value.length === 0 && <p class="chat-small">Conversations are kept in this browser.</p>}
      <ul class="chat-list">
        {shelf.entries.value.map((entry) => (
          <Line key={entry.id} entry={entry} room={room} chosen={chosen} />
        ))}
      </ul>
      <p role="status" class="chat-removed">
        {removed && (
          <>
            Deleted.{" "}
            <button type="button" data-action="restore" ref={undo} onClick={() => void shelf.restore()}>
              Undo
            </button>
          </>
        )}
      </p>
      <h2>Download this conversation</h2>
      <div class="chat-joined">
        <button type="button" disabled={empty} onClick={() => exportAs("markdown")}>
          Markdown
        </button>
        <button type="button" disabled={empty} onClick={() => exportAs("json")}>
          JSON
        </button>
      </div>
    </aside>
  );
}

function Line({ entry, room, chosen }: { entry: Entry; room: Room; chosen(): void }) {
  const [renaming, rename] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const renamed = useRef(false);
  useEffect(() => {
    if (!renaming && renamed.current) opener.current?.focus(); // where it was before the field
    renamed.current = renaming;
  }, [renaming]);
  const open = entry.id === room.records.shelf.id;
  if (renaming) return <Rename entry={entry} room={room} done={() => rename(false)} />;
  return (
    <li>
      <button
        type="button"
        class="chat-title"
        aria-current={open ? "true" : undefined}
        onClick={() => {
          void room.open(entry.id);
          chosen();
        }}
      >
        {entry.title}
      </button>
      <button type="button" aria-label={`Rename ${entry.title}`} ref={opener} onClick={() => rename(true)}>
        Rename
      </button>
      <button type="button" aria-label={`Delete ${entry.title}`} onClick={() => void room.remove(entry.id)}>
        Delete
      </button>
    </li>
  );
}

function Rename({ entry, room, done }: { entry: Entry; room: Room; done(): void }) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.select(), []); // before the next key comes
  const id = `rename-${entry.id}`;
  return (
    <li>
      <form
        class="chat-joined"
        onSubmit={(event) => {
          event.preventDefault();
          void room.records.shelf.rename(entry.id, field.current?.value ?? "");
          done();
        }}
      >
        <label for={id} class="unseen">
          Title
        </label>
        <input
          id={id}
          ref={field}
          defaultValue={entry.title}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            event.stopPropagation();
            done();
          }}
        />
        <button type="submit">Rename</button>
      </form>
    </li>
  );
}
