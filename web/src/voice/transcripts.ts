// What recognisers told of some spoken turns: all of the turn so far, each time it changed. They guess the word that is
// being said, take guesses back, and add capitals and marks late.

/** at: milliseconds from the turn's first sound. */
export interface Partial {
  at: number;
  text: string;
}

export interface SpokenTurn {
  partials: Partial[];
  /** Words of the reply before that are heard when this turn breaks in; null: it waits for the reply's end. */
  breaksInAfter: number | null;
}

export interface Script {
  name: string;
  /** What to look for. */
  about: string;
  turns: SpokenTurn[];
}

const turn = (breaksInAfter: number | null, ...partials: [number, string][]): SpokenTurn => ({
  partials: partials.map(([at, text]) => ({ at, text })),
  breaksInAfter,
});

export const SCRIPTS: readonly Script[] = [
  {
    name: "Second thoughts",
    about: "The recogniser revises words: they are taken back, and what both have in common stays computed.",
    turns: [
      turn(
        null,
        [0, "can"],
        [220, "can you"],
        [460, "can you tell me"],
        [820, "Can you tell me wear"],
        [1050, "Can you tell me where the"],
        [1400, "Can you tell me where the river dan"],
        [1800, "Can you tell me where the river Danube"],
        [2150, "Can you tell me where the river Danube begins and"],
        [2500, "Can you tell me where the river Danube begins, and wear"],
        [2800, "Can you tell me where the river Danube begins, and where it ends?"],
      ),
    ],
  },
  {
    name: "A pause to think",
    about: "A silence in the middle of the turn; the server uses it, and is ready when the last word comes.",
    turns: [
      turn(
        null,
        [0, "I have"],
        [300, "I have rice"],
        [700, "I have rice, two eggs"],
        [1150, "I have rice, two eggs and an onion"],
        [2950, "I have rice, two eggs and an onion. What"],
        [3250, "I have rice, two eggs and an onion. What can I"],
        [3600, "I have rice, two eggs and an onion. What can I cook tonight?"],
      ),
    ],
  },
  {
    name: "Breaking in",
    about: "The second turn breaks into the reply, which ends in the conversation where it was heard last.",
    turns: [
      turn(
        null,
        [0, "tell"],
        [240, "tell me"],
        [520, "Tell me about"],
        [800, "Tell me about the moon"],
        [1200, "Tell me about the moon, please."],
      ),
      turn(
        9,
        [0, "no"],
        [260, "No wait"],
        [560, "No, wait. Only"],
        [900, "No, wait. Only how far"],
        [1300, "No, wait. Only how far away it is."],
      ),
    ],
  },
];

/** A text of one's own, spoken word by word. pace: words per minute. */
export function ownWords(text: string, pace: number): Script {
  const ends = [...text.trim().matchAll(/\S+/g)].map(({ index, 0: word }) => index + word.length);
  const partials = ends.map((end, i) => ({ at: (i * 60_000) / pace, text: text.trim().slice(0, end) }));
  return { name: "Own words", about: "", turns: partials.length > 0 ? [{ partials, breaksInAfter: null }] : [] };
}
