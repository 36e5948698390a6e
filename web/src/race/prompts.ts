// Prompts of different kinds, since what speculation saves depends on how much of a reply can be foreseen.

export interface Sample {
  id: string;
  /** What the person chooses by. */
  name: string;
  /** Why it is here: what kind of drafting it suits. */
  hint: string;
  text: string;
}

/** The id that stands for the person's own text. */
export const OWN = "own";

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

export const SAMPLES: readonly [Sample, ...Sample[]] = [
  {
    id: "chat",
    name: "Conversation",
    hint: "free prose, of which little can be foreseen",
    text: "Explain to a curious child why the sky is blue and why sunsets are red.",
  },
  {
    id: "code",
    name: "Code",
    hint: "much of it follows from the line before",
    text: "Write a Python class for a bounded queue, with put, get and a length, and a doc string for each method.",
  },
  {
    id: "edit",
    name: "Edit",
    hint: "most of the reply stands in the prompt already",
    text: `Rename width to columns and height to rows in this function, and change nothing else:\n\n${FUNCTION}`,
  },
  {
    id: "summary",
    name: "Summary",
    hint: "names and phrases come back from the prompt",
    text: `Summarise this report in three sentences:\n\n${REPORT}`,
  },
];
