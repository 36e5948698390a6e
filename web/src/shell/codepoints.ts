// The server counts text in code points, a browser in UTF-16 units: an emoji is one of the first and two of the second.

/** How many code points `text` has. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The UTF-16 index behind the first `count` code points; the text's length where it has fewer. */
export function indexBehind(text: string, count: number): number {
  let index = 0;
  for (const character of text) {
    if (count <= 0) break;
    index += character.length;
    count -= 1;
  }
  return index;
}

/** The first `count` code points of `text`. */
export function firstOf(text: string, count: number): string {
  return text.slice(0, indexBehind(text, count));
}
