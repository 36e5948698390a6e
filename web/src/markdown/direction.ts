// Which way a text runs. The browser's own `dir="auto"` looks through all of an element whenever something is put into it,
// which a list of thousands of items cannot afford.

const LETTER = /\p{L}/u;
const FROM_RIGHT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFF\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u;

/** Told by the first letter; null where there is none. */
export function direction(text: string): "ltr" | "rtl" | null {
  const letter = LETTER.exec(text)?.[0];
  if (letter === undefined) return null;
  return FROM_RIGHT.test(letter) ? "rtl" : "ltr";
}
