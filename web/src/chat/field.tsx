// A setting that is a number: what is wrong with it is told once the field is left.

import type { RefCallback } from "preact";
import { useState } from "preact/hooks";
import { type NumberField, slip } from "../settings/parse";

export interface FieldSpec {
  name: NumberField;
  id: string;
  label: string;
  mode: "decimal" | "numeric";
  /** What it is while nothing is typed. */
  empty: string;
  help?: string;
}

export interface FieldProps extends FieldSpec {
  value: string;
  /** Told when a reply was asked for; "" for nothing. */
  problem: string;
  set(value: string): void;
  field: RefCallback<HTMLInputElement>;
}

export function Field({ name, id, label, mode, empty, help, value, problem, set, field }: FieldProps) {
  const [left, leave] = useState(""); // the value that the field was left with
  const sentence = problem || (left === value ? slip(name, value) : "");
  return (
    <div class="chat-field">
      <label for={id}>{label}</label>
      <input
        id={id}
        ref={field}
        type="text"
        inputMode={mode}
        autocomplete="off"
        placeholder={empty}
        value={value}
        aria-invalid={sentence !== ""}
        aria-describedby={[help ? `${id}-help` : "", `${id}-problem`].join(" ").trim()}
        onInput={(event) => set(event.currentTarget.value)}
        onBlur={() => leave(value)}
      />
      {help && (
        <p class="chat-small" id={`${id}-help`}>
          {help}
        </p>
      )}
      <p class="chat-problem" id={`${id}-problem`} role="alert">
        {sentence}
      </p>
    </div>
  );
}
