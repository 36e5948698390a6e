// What several races for the same reply come to, by the drafter and tree they speculated with: a tool to tune both.

import { kept, type Outcome } from "./outcome";
import { keyOf, type LaneName, type Plan } from "./plan";

const KEPT = 50; // races in one row

interface Run {
  /** Milliseconds. */
  total: Record<LaneName, number>;
  /** Tokens per verify step; null: the server did not tell. */
  perStep: number | null;
  identical: boolean;
}

/** The races with one drafter and tree. */
export class Row {
  readonly mode: string;
  readonly maxNodes: number | null;
  #runs: Run[] = [];

  constructor({ mode, maxNodes }: Pick<Plan, "mode" | "maxNodes">) {
    this.mode = mode;
    this.maxNodes = maxNodes;
  }

  add(run: Run): void {
    this.#runs = [...this.#runs, run].slice(-KEPT);
  }

  get runs(): number {
    return this.#runs.length;
  }

  /** The median of a lane's time, in milliseconds. */
  total(lane: LaneName): number {
    return median(this.#runs.map(({ total }) => total[lane])) ?? 0;
  }

  get perStep(): number | null {
    return median(this.#runs.flatMap(({ perStep }) => perStep ?? []));
  }

  /** Whether the texts were the same in every race. */
  get identical(): boolean {
    return this.#runs.every(({ identical }) => identical);
  }
}

export class Results {
  #key = "";
  #count = 0;
  /** In the order in which drafters and trees were first tried. */
  readonly rows: Row[] = [];

  /** Which lane runs first next: they take turns, so that neither always finds the machine warmer. */
  next(plan: Plan): LaneName {
    return this.#key === keyOf(plan) && this.#count % 2 === 1 ? "speculating" : "plain";
  }

  /** A race for another reply begins a new table. */
  add(outcome: Outcome): void {
    const { plan, total, lanes } = outcome;
    if (keyOf(plan) !== this.#key) {
      this.#key = keyOf(plan);
      this.#count = 0;
      this.rows.length = 0;
    }
    this.#count += 1;
    let row = this.rows.find(({ mode, maxNodes }) => mode === plan.mode && maxNodes === plan.maxNodes);
    if (row === undefined) {
      row = new Row(plan);
      this.rows.push(row);
    }
    row.add({ total, perStep: lanes.speculating.figures.perStep, identical: kept(outcome) });
  }
}

function median(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? 0;
  const half = sorted.length >> 1;
  return sorted.length % 2 ? at(half) : (at(half - 1) + at(half)) / 2;
}
