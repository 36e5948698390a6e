// Where the nodes of a tree stand: depth to the right, and downwards in depth-first order, each as high as no other stands
// in its way. The accepted child comes first, the others as the tree has them: what became the reply is always the straight
// line on top, wherever the drafters had it.

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
  const free: number[] = []; // of each column: the first row below its nodes,
  const clear: number[] = []; // and below the links that go from these to the right
  const take = (column: number, row: number): Place => {
    free[column] = row + 1;
    layout.columns = Math.max(layout.columns, column + 1);
    layout.rows = Math.max(layout.rows, row + 1);
    return { column, row };
  };
  const place = (node: number, column: number, above: number): number => {
    const owner = hasOwn && node === last;
    const next = children[node] ?? [];
    const branches = owner || next.length > 0;
    const row = Math.max(above, free[column] ?? 0, branches ? (clear[column] ?? 0) : 0);
    places[node] = take(column, row);
    let bottom = row;
    if (owner) {
      bottom = Math.max(row, free[column + 1] ?? 0);
      layout.own = take(column + 1, bottom);
    }
    for (const child of next) bottom = place(child, column + 1, row);
    if (branches) clear[column] = bottom + 1; // whoever stands here and branches would touch them
    return row;
  };
  place(0, 0, 0);
  return layout;
}
