// The kept conversations, to open, rename, download or remove.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Entry } from "./cabinet";
import { byDay } from "./days";
import type { Room } from "./room";

export type FileKind = "markdown" | "json";
const FILES = { markdown: "Markdown", json: "JSON" } as const;
const KINDS = Object.keys(FILES) as FileKind[];

export interface ListProps {
  room: Room;
  /** A conversation was chosen. */
  chosen(): void;
  /** Saves the open conversation as a file, or the kept one of this id. */
  exportAs(kind: FileKind, id?: string): void;
}

export function List({ room, chosen, exportAs }: ListProps) {
  room.shape.value;
  const { shelf } = room.records;
  const removed = shelf.removed.value;
  const empty = room.conversation.turns.length === 0;
  const panel = useRef<HTMLElement>(null);
  const undo = useRef<HTMLButtonElement>(null);
  const before = useRef(removed);
  const [more, showMore] = useState<string | null>(null); // the id of the line whose actions are in sight
  useEffect(() => {
    if (before.current === removed) return;
    before.current = removed;
    (removed ? undo.current : panel.current)?.focus(); // the button that was pressed goes, and the focus with it
  }, [removed]);
  return (
    <aside id="conversations" class="chat-side" aria-label="Conversations" tabIndex={-1} ref={panel}>
      {shelf.entries.value.length === 0 && <p class="chat-small">Conversations are kept in this browser.</p>}
      {byDay(shelf.entries.value, Date.now()).map(({ day, entries }) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul class="chat-list">
            {entries.map((entry) => (
              <Line
                key={entry.id}
                {...{ entry, room, chosen, exportAs }}
                more={more === entry.id}
                showMore={(on) => showMore(on ? entry.id : null)}
              />
            ))}
          </ul>
        </section>
      ))}
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
        {KINDS.map((kind) => (
          <button key={kind} type="button" disabled={empty} onClick={() => exportAs(kind)}>
            {FILES[kind]}
          </button>
        ))}
      </div>
    </aside>
  );
}

interface LineProps extends ListProps {
  entry: Entry;
  /** Its actions are in sight. */
  more: boolean;
  showMore(on: boolean): void;
}

function Line({ entry, room, chosen, exportAs, more, showMore }: LineProps) {
  const [renaming, rename] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const renamed = useRef(false);
  useEffect(() => {
    if (!renaming && renamed.current) opener.current?.focus(); // the field that had it is gone
    renamed.current = renaming;
  }, [renaming]);
  const { id, title } = entry;
  const open = id === room.records.shelf.id;
  if (renaming) return <Rename entry={entry} room={room} done={() => rename(false)} />;
  return (
    <li
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !more) return;
        event.stopPropagation(); // else it would stop a reply
        showMore(false);
        opener.current?.focus();
      }}
    >
      <button
        type="button"
        class="chat-title"
        aria-current={open ? "true" : undefined}
        onClick={() => {
          void room.open(id);
          chosen();
        }}
      >
        {title}
      </button>
      <button
        type="button"
        class="chat-more"
        aria-label={`More for ${title}`}
        aria-expanded={more}
        ref={opener}
        onClick={() => showMore(!more)}
      >
        ⋯
      </button>
      {more && (
        <div class="chat-deeds">
          <button
            type="button"
            aria-label={`Rename ${title}`}
            onClick={() => {
              showMore(false);
              rename(true);
            }}
          >
            Rename
          </button>
          {KINDS.map((kind) => (
            <button
              key={kind}
              type="button"
              aria-label={`${FILES[kind]} file of ${title}`}
              onClick={() => exportAs(kind, id)}
            >
              {FILES[kind]}
            </button>
          ))}
          <button type="button" aria-label={`Delete ${title}`} onClick={() => void room.remove(id)}>
            Delete
          </button>
        </div>
      )}
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
