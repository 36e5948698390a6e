// A table of a reply, row by row.

import type { Tokens } from "marked";
import { Prose, type Texts } from "./prose";
import { type Ending, Series, type View } from "./series";
import { LONG } from "./shorten";

interface Row {
  type: "row";
  raw: string;
  cells: Tokens.TableCell[];
}

export class TableView implements View<Tokens.Table> {
  readonly element = document.createElement("div");
  readonly #head: string;
  readonly #rows: Series<Row>;

  constructor({ header }: Tokens.Table, texts: Texts) {
    this.#head = told(header);
    this.element.className = "md-scroll";
    this.element.role = "group";
    this.element.ariaLabel = "Table";
    const table = document.createElement("table");
    const head = new RowView(texts);
    head.update(rowOf(header), "done");
    table.createTHead().append(head.element);
    this.#rows = new Series(table.createTBody(), () => new RowView(texts));
    this.element.append(table);
  }

  update({ header, rows }: Tokens.Table, ending: Ending): boolean {
    if (told(header) !== this.#head) return false;
    this.#rows.draw(rows.map(rowOf), ending);
    return true;
  }

  shed({ rows }: Tokens.Table): void {
    this.#rows.shed(rows.map(rowOf));
  }
}

class RowView implements View<Row> {
  readonly element = document.createElement("tr");
  readonly #texts: Texts;

  constructor(texts: Texts) {
    this.#texts = texts;
  }

  update({ raw, cells }: Row, ending: Ending): boolean {
    if (ending === "later") return true;
    this.element.replaceChildren();
    const last = cells.findLastIndex(({ text }) => text !== "");
    for (const [index, { header, align, text }] of cells.entries()) {
      const cell = document.createElement(header ? "th" : "td");
      cell.dir = "auto";
      if (header) cell.scope = "col";
      if (align) cell.className = `md-${align}`;
      this.element.append(cell);
      const prose = new Prose(cell, this.#texts);
      // A line so long is no table a person would read: it is shown as it was written.
      if (raw.length > LONG) prose.literal(text);
      else prose.draw(text, index < last ? "done" : ending);
    }
    return true;
  }
}

function rowOf(cells: Tokens.TableCell[]): Row {
  return { type: "row", raw: told(cells), cells };
}

function told(cells: Tokens.TableCell[]): string {
  return cells.map(({ align, text }) => `${align}|${text}`).join("|");
}
