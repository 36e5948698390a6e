// Whether a line goes on with an open block, by the rules of CommonMark.

import type { Block } from "./block";
import type { Cursor } from "./cursor";
import { CODE_INDENT } from "./starts";

/** If so, the cursor stands behind what marks it. */
export function goesOn(block: Block, cursor: Cursor): boolean {
  switch (block.kind) {
    case "quote":
      return quoted(cursor);
    case "list":
      return true;
    case "item":
      if (cursor.blank) return !block.empty;
      if (cursor.indent < block.indent) return false;
      cursor.space(block.indent);
      return true;
    case "code":
      if (!block.fence && cursor.indent < CODE_INDENT) return cursor.blank;
      cursor.space(block.fence?.indent ?? CODE_INDENT);
      return true;
    case "paragraph":
    case "table":
      return !cursor.blank;
    default:
      return false;
  }
}

/** Goes on behind a quote's mark, if the line has one. */
export function quoted(cursor: Cursor): boolean {
  if (cursor.indent >= CODE_INDENT || !cursor.rest.startsWith(">")) return false;
  cursor.space(cursor.indent);
  cursor.skip(1);
  cursor.space(1);
  return true;
}
