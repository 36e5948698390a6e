// What a Markdown text is made of.

/** Stands around other blocks. */
export type Container = Quote | List | Item | Table;

/** Holds text. */
export type Leaf = Paragraph | Heading | Code | Row;

export type Block = Container | Leaf | Rule;

export interface Quote {
  readonly kind: "quote";
}

export interface List {
  readonly kind: "list";
  /** The first number; null for bullets. */
  readonly start: number | null;
  /** What ends a number or is the bullet: items with another one begin another list. */
  readonly mark: string;
  /** No blank line between items, nor between the blocks of one item. */
  tight: boolean;
}

export interface Item {
  readonly kind: "item";
  readonly list: List;
  /** Columns by which lines are indented that belong to it. */
  readonly indent: number;
  /** Nothing stands in it yet. */
  empty: boolean;
}

export interface Paragraph {
  readonly kind: "paragraph";
  /** The first block of a list item: may begin with a task's box. */
  readonly first: boolean;
  text: string;
}

export interface Heading {
  readonly kind: "heading";
  /** 1 to 6. */
  readonly level: number;
  text: string;
}

export interface Code {
  readonly kind: "code";
  /** What opened it; null for code by indentation. */
  readonly fence: { readonly mark: string; readonly length: number; readonly indent: number } | null;
  /** The fence's first word; "" for none. */
  readonly language: string;
  /** Ends with a line break, unless its last line is still coming. */
  text: string;
}

export type Alignment = "left" | "center" | "right" | "";

export interface Table {
  readonly kind: "table";
  /** One for each column. */
  readonly alignments: readonly Alignment[];
}

export interface Row {
  readonly kind: "row";
  readonly header: boolean;
  readonly alignments: readonly Alignment[];
  text: string;
}

/** A thematic break. */
export interface Rule {
  readonly kind: "rule";
}
