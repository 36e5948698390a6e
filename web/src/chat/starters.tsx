// What an empty conversation offers: prompts that the default model answers well. It is asked to repeat a text and not to
// edit one, which so small a model gives back unchanged.

export interface Starter {
  name: string;
  /** What is to be seen with it. */
  hint: string;
  text: string;
}

const STORY =
  "The cat sat by the window and watched the rain. Every morning the cat waited for the baker, and the baker gave the " +
  "cat a warm crumb. When winter came, the cat slept by the oven. The children said that no other cat in the town was " +
  "so kind.";

export const STARTERS: readonly Starter[] = [
  {
    name: "Why is the sky blue?",
    hint: "Free prose: a guess is right now and then.",
    text: "Why is the sky blue?",
  },
  {
    name: "Write a Python function that reverses a string.",
    hint: "Code: fixed phrases can be foreseen.",
    text: "Write a Python function that reverses a string.",
  },
  {
    name: "Repeat a short text word for word.",
    hint: "Copied words: nearly all guesses are right.",
    text: `Repeat this text word for word:\n\n${STORY}`,
  },
];

/** ask: sends a prompt. */
export function Starters({ ask }: { ask(text: string): void }) {
  return (
    <div id="empty">
      <p class="chat-lead">Ask the model something.</p>
      <p>Guesses ride ahead, the model checks them all in one pass, and the text is exactly its own.</p>
      <ul class="chat-starters" aria-label="Prompts to begin with">
        {STARTERS.map(({ name, hint, text }) => (
          <li key={name}>
            <button type="button" onClick={() => ask(text)}>
              {name}
              <span class="chat-small">{hint}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
