// What is to be raced.

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren, TargetedSubmitEvent } from "preact";
import { useRef } from "preact/hooks";
import type { FormValues } from "../settings/parse";
import { drafterName } from "../wire/drafters";
import { isPlanProblem, type PlanProblem, planned, promptOf, type RaceForm } from "./plan";
import { hintOf, OWN, OWN_NAME, SAMPLES } from "./prompts";
import type { Room } from "./room";
import { formWords } from "./words";

export interface RaceFieldsProps {
  room: Room;
  form: Signal<RaceForm>;
  /** The chat's. */
  settings: FormValues;
}

export function RaceFields({ room, form, settings }: RaceFieldsProps) {
  const problem = useSignal<PlanProblem | null>(null);
  const open = useSignal(true); // folded by a race, so that its lanes are in sight
  const fold = useRef<HTMLDetailsElement>(null);
  const running = room.running.value;
  const values = form.value;
  const set = (change: Partial<RaceForm>) => {
    form.value = { ...form.peek(), ...change };
    problem.value = null;
  };
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (running) {
      room.stop();
      return;
    }
    const plan = planned(values, settings);
    problem.value = isPlanProblem(plan) ? plan : null;
    if (!isPlanProblem(plan)) {
      open.value = false;
      room.start(plan);
    } else if (plan.field !== null) {
      if (fold.current) fold.current.open = true; // at once: what is folded takes no focus
      document.getElementById(idOf(plan.field))?.focus();
    }
  };
  const field = (name: keyof RaceForm, label: string, mode: "numeric" | "text" = "numeric", placeholder = "") => (
    <Field name={name} label={label} problem={problem.value}>
      <input
        id={idOf(name)}
        value={values[name]}
        inputMode={mode}
        placeholder={placeholder}
        autocomplete="off"
        aria-invalid={problem.value?.field === name}
        aria-describedby={`${idOf(name)}-problem`}
        onInput={({ currentTarget }) => set({ [name]: currentTarget.value })}
      />
    </Field>
  );
  return (
    <form class="race-form" onSubmit={submit} noValidate>
      <details
        class="race-choice"
        ref={fold}
        open={open.value}
        onToggle={({ currentTarget }) => {
          open.value = currentTarget.open;
        }}
      >
        <summary>{formWords(values)}</summary>
        <fieldset disabled={running}>
          <legend class="unseen">What is to be raced</legend>
          <div>
            <label for="race-prompt">Prompt</label>
            <select
              id="race-prompt"
              aria-describedby="race-hint"
              value={values.prompt}
              onChange={({ currentTarget }) => set({ prompt: currentTarget.value })}
            >
              {SAMPLES.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
              <option value={OWN}>{OWN_NAME}</option>
            </select>
            <p class="race-quiet" id="race-hint">
              {hintOf(values.prompt)}
            </p>
          </div>
          {values.prompt === OWN ? (
            <Field name="own" label="Your prompt" problem={problem.value}>
              <textarea
                id={idOf("own")}
                rows={4}
                dir="auto"
                value={values.own}
                aria-invalid={problem.value?.field === "own"}
                aria-describedby={`${idOf("own")}-problem`}
                onInput={({ currentTarget }) => set({ own: currentTarget.value })}
              />
            </Field>
          ) : (
            <details>
              <summary>What it says</summary>
              <blockquote class="race-prompt">{promptOf(values)}</blockquote>
            </details>
          )}
          <div class="race-numbers">
            {field("seed", "Seed")}
            {field("limit", "Longest reply, in tokens")}
            <div>
              <label for={idOf("mode")}>Drafter</label>
              <select
                id={idOf("mode")}
                value={values.mode}
                onChange={({ currentTarget }) => set({ mode: currentTarget.value })}
              >
                {[...new Set([...room.drafters.value, values.mode])].map((name) => (
                  <option key={name} value={name}>
                    {drafterName(name)}
                  </option>
                ))}
              </select>
            </div>
            {field("maxNodes", "Largest tree, in nodes", "numeric", "the server’s")}
          </div>
        </fieldset>
        <p class="race-quiet">
          {samplingWords(settings)} The replies are made one after the other, so that neither slows the other, with the
          prompt in the cache, so that neither has to read it. Other replies at the same time would slow both.
        </p>
      </details>
      {problem.value?.field === null && (
        <p class="bar" role="alert">
          In the chat’s settings: {problem.value.sentence}
        </p>
      )}
      <button type="submit" id="race-start" class="race-main">
        {running ? "Stop" : room.results.rows.length > 0 ? "Race again" : "Race"}
      </button>
    </form>
  );
}

const idOf = (field: keyof RaceForm) => `race-${field}`;

interface FieldProps {
  name: keyof RaceForm;
  label: string;
  problem: PlanProblem | null;
  children: ComponentChildren;
}

function Field({ name, label, problem, children }: FieldProps) {
  return (
    <div>
      <label for={idOf(name)}>{label}</label>
      {children}
      <p class="race-problem" id={`${idOf(name)}-problem`} role="alert">
        {problem?.field === name ? problem.sentence : ""}
      </p>
    </div>
  );
}

function samplingWords({ temperature, topP, topK, minP, repetitionPenalty, instructions }: FormValues): string {
  const named = { temperature, "top-p": topP, "top-k": topK, "min-p": minP, "repetition penalty": repetitionPenalty };
  const set = Object.entries(named).flatMap(([name, value]) => (value.trim() ? `${name} ${value.trim()}` : []));
  if (instructions.trim()) set.push("its system prompt");
  const what = set.length > 0 ? set.join(", ") : "the server’s own sampling";
  return `Sampling as in the chat’s settings: ${what}.`;
}
