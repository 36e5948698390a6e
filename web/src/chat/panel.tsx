// The settings: what requests are made of, the theme, and the key.

import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { FormValues } from "../settings/parse";
import { THEMES, type Theme } from "../settings/theme";
import type { Room } from "./room";

type TextField = Exclude<keyof FormValues, "speculation">;

interface FieldSpec {
  name: TextField;
  id: string;
  label: string;
  mode: "decimal" | "numeric";
  empty: string;
  help?: string;
}

const FIELDS: readonly FieldSpec[] = [
  {
    name: "temperature",
    id: "temperature",
    label: "Temperature",
    mode: "decimal",
    empty: "as the server sets it",
    help: "0 always takes the likeliest token.",
  },
  {
    name: "seed",
    id: "seed",
    label: "Seed",
    mode: "numeric",
    empty: "random",
    help: "The same seed and conversation give the same reply, with speculation on or off.",
  },
  {
    name: "maxTokens",
    id: "max-tokens",
    label: "Longest reply, in tokens",
    mode: "numeric",
    empty: "as the server sets it",
  },
  { name: "topP", id: "top-p", label: "Top-p", mode: "decimal", empty: "off" },
  { name: "topK", id: "top-k", label: "Top-k", mode: "numeric", empty: "off" },
  { name: "minP", id: "min-p", label: "Min-p", mode: "decimal", empty: "off" },
  { name: "repetitionPenalty", id: "repetition-penalty", label: "Repetition penalty", mode: "decimal", empty: "off" },
];

const THEME_NAMES: Record<Theme, string> = { system: "As the system", light: "Light", dark: "Dark" };

export interface PanelProps {
  room: Room;
  settings: Signal<FormValues>;
  theme: Signal<Theme>;
  /** The key that is used; "" for none. */
  apiKey: string;
  /** The key's field is to have the focus; taken back once it has. */
  wanted: Signal<boolean>;
  done(): void;
}

export function Panel({ room, settings, theme, apiKey, wanted, done }: PanelProps) {
  const fields = useRef(new Map<string, HTMLInputElement | HTMLTextAreaElement>());
  const values = settings.value;
  const problem = room.problem.value;
  const set = (name: TextField, value: string) => {
    settings.value = { ...settings.value, [name]: value };
    if (room.problem.value?.field === name) room.problem.value = null;
  };
  useEffect(() => {
    for (const [name, field] of fields.current) {
      field.setCustomValidity(problem?.field === name ? problem.sentence : "");
      if (problem?.field === name) field.reportValidity();
    }
  }, [problem]);
  return (
    <aside id="settings" class="chat-side" aria-label="Settings">
      <form onSubmit={(event) => event.preventDefault()}>
        <label for="instructions">System prompt</label>
        <textarea
          id="instructions"
          ref={(field) => {
            if (field) fields.current.set("instructions", field);
          }}
          rows={4}
          dir="auto"
          placeholder="How the model should answer"
          value={values.instructions}
          onInput={(event) => set("instructions", event.currentTarget.value)}
        />
        {FIELDS.map(({ name, id, label, mode, empty, help }) => (
          <div key={name} class="chat-field">
            <label for={id}>{label}</label>
            <input
              id={id}
              ref={(field) => {
                if (field) fields.current.set(name, field);
              }}
              type="text"
              inputMode={mode}
              autocomplete="off"
              placeholder={empty}
              value={values[name]}
              aria-describedby={help ? `${id}-help` : undefined}
              onInput={(event) => set(name, event.currentTarget.value)}
            />
            {help && (
              <p class="chat-small" id={`${id}-help`}>
                {help}
              </p>
            )}
          </div>
        ))}
        <fieldset class="chat-themes">
          <legend>Theme</legend>
          {THEMES.map((name) => (
            <label key={name} class="check">
              <input
                type="radio"
                name="theme"
                value={name}
                checked={theme.value === name}
                onChange={() => {
                  theme.value = name;
                }}
              />{" "}
              {THEME_NAMES[name]}
            </label>
          ))}
        </fieldset>
      </form>
      <KeyForm apiKey={apiKey} wanted={wanted} setKey={(key) => room.setKey(key)} />
      <button type="button" id="settings-done" onClick={done}>
        Done
      </button>
    </aside>
  );
}

type KeyFormProps = Pick<PanelProps, "apiKey" | "wanted"> & { setKey(key: string): void };

function KeyForm({ apiKey, wanted, setKey }: KeyFormProps) {
  const field = useRef<HTMLInputElement>(null);
  const asked = wanted.value;
  useEffect(() => {
    if (!asked) return;
    field.current?.focus();
    wanted.value = false;
  }, [asked, wanted]);
  return (
    <form
      id="key-form"
      onSubmit={(event) => {
        event.preventDefault();
        setKey(field.current?.value.trim() ?? "");
      }}
    >
      <label for="key">API key, if the server asks for one</label>
      <div class="chat-joined">
        <input
          id="key"
          ref={field}
          type="password"
          autocomplete="off"
          spellcheck={false}
          defaultValue={apiKey}
          aria-describedby="key-help"
        />
        <button type="submit">Connect</button>
      </div>
      <p class="chat-small" id="key-help">
        Kept until this tab is closed.
      </p>
    </form>
  );
}
