// The settings: what requests are made of, the theme, and the key.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { FormValues } from "../settings/parse";
import { DEFAULTS } from "../settings/store";
import { THEMES, type Theme } from "../settings/theme";
import type { Server } from "../wire/server";
import { Field, type FieldSpec } from "./field";
import type { Room } from "./room";
import { Drafter } from "./tuning";

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

const TREES: readonly FieldSpec[] = [
  {
    name: "maxNodes",
    id: "max-nodes",
    label: "Largest tree, in nodes",
    mode: "numeric",
    empty: "the server’s",
    help: "1 makes no guesses.",
  },
];

const THEME_NAMES: Record<Theme, string> = { system: "As the system", light: "Light", dark: "Dark" };

export interface PanelProps {
  room: Room;
  server: Pick<Server, "url" | "headers" | "key">;
  settings: Signal<FormValues>;
  theme: Signal<Theme>;
  /** The key that is used; "" for none. */
  apiKey: string;
  /** The key's field is to have the focus; taken back once it has. */
  wanted: Signal<boolean>;
  done(): void;
}

export function Panel({ room, server, settings, theme, apiKey, wanted, done }: PanelProps) {
  const fields = useRef(new Map<string, HTMLInputElement | HTMLTextAreaElement>());
  const before = useSignal<FormValues | null>(null); // what a reset took
  const values = settings.value;
  const problem = room.problem.value;
  const set = (change: Partial<FormValues>) => {
    settings.value = { ...settings.peek(), ...change };
    before.value = null;
    if (problem && problem.field in change) room.problem.value = null;
  };
  const all = (next: FormValues, taken: FormValues | null) => {
    settings.value = next;
    before.value = taken;
    room.problem.value = null;
  };
  useEffect(() => {
    const field = problem && fields.current.get(problem.field);
    field?.closest("details")?.setAttribute("open", "");
    field?.focus();
  }, [problem]);
  const told = (name: keyof FormValues) => (problem?.field === name ? problem.sentence : "");
  const numbers = (specs: readonly FieldSpec[]) =>
    specs.map((spec) => (
      <Field
        key={spec.name}
        {...spec}
        value={values[spec.name] ?? ""}
        problem={told(spec.name)}
        set={(value) => set({ [spec.name]: value })}
        field={(field) => {
          if (field) fields.current.set(spec.name, field);
        }}
      />
    ));
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
          aria-describedby="instructions-problem"
          aria-invalid={told("instructions") !== ""}
          onInput={(event) => set({ instructions: event.currentTarget.value })}
        />
        <p class="chat-problem" id="instructions-problem" role="alert">
          {told("instructions")}
        </p>
        {numbers(FIELDS)}
        <details class="chat-tuning">
          <summary>For tuning</summary>
          <Drafter server={server} values={values} choose={(drafter) => set({ drafter })} />
          {numbers(TREES)}
        </details>
        <button
          type="button"
          id="reset"
          onClick={() => (before.value ? all(before.value, null) : all({ ...DEFAULTS }, values))}
        >
          {before.value ? "Undo the reset" : "Reset all to the defaults"}
        </button>
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
