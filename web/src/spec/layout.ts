// Where the nodes of a tree stand: depth to the right, and downwards in depth-first order, so that a node is level with
// its first child. The accepted child comes first, the others as the tree has them: what became the reply is always the
// straight line on top, wherever the drafters had it.

import type { StepTree } from "../wire/events";

export interface Place {
  /** Depth; 0 is the pending token. */
  column: number;
  row: number;
}

export interface Layout {
  /** Of each node: [n]. */
  places: Place[];
  /** Of the model's own token behind the accepted ones, above the guesses it proved wrong; null where there is none. */
  own: Place | null;
  columns: number;
  rows: number;
}

export function layOut(tree: StepTree, hasOwn: boolean): Layout {
  const children: number[][] = tree.parents.map(() => []);
  tree.parents.forEach((parent, node) => {
    children[parent]?.push(node);
  });
  const right = new Set(tree.path);
  for (const siblings of children) siblings.sort((a, b) => Number(right.has(b)) - Number(right.has(a)));
  const last = tree.path[tree.path.length - 1];
  const places: Place[] = new Array(tree.parents.length);
  const layout: Layout = { places, own: null, columns: 1, rows: 0 };
  // Returns the rows it took, at least one.
  const place = (node: number, column: number, row: number): number => {
    places[node] = { column, row };
    let taken = 0;
    if (hasOwn && node === last) {
      layout.own = { column: column + 1, row };
      taken = 1;
    }
    for (const child of children[node] ?? []) taken += place(child, column + 1, row + taken);
    const deepest = layout.own && node === last ? column + 2 : column + 1;
    layout.columns = Math.max(layout.columns, deepest);
    return Math.max(taken, 1);
  };
  layout.rows = place(0, 0, 0);
  return layout;
}
