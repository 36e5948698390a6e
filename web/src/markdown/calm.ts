// What a half-arrived text is shown as: marks whose other end is still to come do not stand there as marks first.

/** A link's address that is still coming, and marks that may go on, at the end of a text. */
const HALF_LINK = /!?\[([^[\]]*)\]\([^()\s]*$/;
const HALF_MARK = /[*_~`\\[!]+$|&#?\w{0,30}$/;

/** The text with its open ends closed. */
export function calm(text: string): string {
  const shown = text.replace(HALF_LINK, "$1").replace(HALF_MARK, "").trimEnd();
  const open: string[] = [];
  let code = "";
  for (const { 0: mark, index } of shown.matchAll(/\\[^`]|`+|\*+|_+|~~/g)) {
    if (mark.startsWith("`")) {
      if (code === "") code = mark;
      else if (code === mark) code = "";
    }
    if (code !== "" || mark.startsWith("`") || mark.startsWith("\\")) continue;
    const before = shown[index - 1] ?? " ";
    const after = shown[index + mark.length] ?? " ";
    if (/\S/.test(before) && open.includes(mark)) open.splice(open.indexOf(mark));
    else if (/\S/.test(after) && !(mark.startsWith("_") && /[\p{L}\p{N}]/u.test(before))) open.push(mark);
  }
  return shown + code + open.reverse().join("");
}
