// Prompts of different kinds, since what speculation saves depends on how much of a reply can be foreseen.

export interface Sample {
  id: string;
  /** What the person chooses by. */
  name: string;
  /** What kind of prompt it is, and how much guesses help there. */
  hint: string;
  text: string;
}

/** The id that stands for the person's own text, and what is said of that. */
export const OWN = "own";
export const OWN_NAME = "Your own";
const OWN_HINT = "The more of the reply can be foreseen, the more guesses ahead help.";

const FUNCTION = `def area(width, height):
    """The area of a rectangle of this width and height."""
    if width < 0 or height < 0:
        raise ValueError("width and height must not be negative")
    return width * height`;

const REPORT =
  "The harbour bridge was closed on Tuesday after an inspection found cracks in two of its main beams. Engineers say " +
  "that the cracks are small and that nobody was in danger, but the bridge stays closed until the beams have been " +
  "replaced, which will take about six weeks. Until then the ferry runs every ten minutes, and buses take the road " +
  "around the bay. The city pays for the ferry, so that nobody needs a ticket.";

/** Those that guesses help most come first. */
export const SAMPLES: readonly [Sample, ...Sample[]] = [
  {
    id: "edit",
    name: "Edit",
    hint: "Copies much of its input: guesses ahead help most.",
    text: `Rename width to columns and height to rows in this function, and change nothing else:\n\n${FUNCTION}`,
  },
  {
    id: "summary",
    name: "Summary",
    hint: "Names and phrases come back from its input: guesses ahead help much.",
    text: `Summarise this report in three sentences:\n\n${REPORT}`,
  },
  {
    id: "code",
    name: "Code",
    hint: "Written anew, in set forms: guesses ahead help some.",
    text: "Write a Python class for a bounded queue, with put, get and a length, and a doc string for each method.",
  },
  {
    id: "chat",
    name: "Conversation",
    hint: "Free text, of which little can be foreseen: guesses ahead help least, and may cost more than they save.",
    text: "Explain to a curious child why the sky is blue and why sunsets are red.",
  },
];

/** undefined: OWN, or none of today's. */
export function sampleOf(id: string): Sample | undefined {
  return SAMPLES.find((sample) => sample.id === id);
}

/** id: a sample's, or OWN. */
export function hintOf(id: string): string {
  return sampleOf(id)?.hint ?? OWN_HINT;
}
