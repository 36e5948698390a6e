// Whether two texts are the same, and where they part.

/** Code points of the texts before and after the first difference, enough to find the place. */
const BEFORE = 48;
const AFTER = 64;

export interface Same {
  same: true;
  /** Code points. */
  characters: number;
}

export interface Different {
  same: false;
  /** The first character that differs, counted in code points from 1. */
  at: number;
  /** What stands right before it in both. */
  before: string;
  /** How each goes on; "" where it has ended. */
  first: string;
  second: string;
}

export function compare(first: string, second: string): Same | Different {
  const [a, b] = [[...first], [...second]];
  let i = 0;
  while (i < a.length && a[i] === b[i]) i += 1;
  if (i === a.length && i === b.length) return { same: true, characters: i };
  const after = (text: string[]) => text.slice(i, i + AFTER).join("");
  return {
    same: false,
    at: i + 1,
    before: a.slice(Math.max(0, i - BEFORE), i).join(""),
    first: after(a),
    second: after(b),
  };
}
