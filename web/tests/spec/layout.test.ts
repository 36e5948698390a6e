import { describe, expect, it } from "vitest";
import { layOut } from "../../src/spec/layout";
import { depthsOf } from "../../src/spec/tree";
import type { StepTree } from "../../src/wire/events";
import { demoDeltas } from "./demo";

function treesOf(nodes: number): StepTree[] {
  return demoDeltas(12, { nodes, seed: nodes }).flatMap(
    ({ spec }) => spec.steps?.flatMap(({ tree }) => tree ?? []) ?? [],
  );
}

describe("layOut", () => {
  it.each(Array.from({ length: 64 }, (_, index) => index + 1))("puts %i nodes where none covers another", (nodes) => {
    for (const tree of treesOf(nodes)) {
      const { places, own, columns, rows } = layOut(tree, true);
      const all = own ? [...places, own] : places;
      expect(new Set(all.map(({ column, row }) => `${column} ${row}`)).size).toBe(tree.texts.length + 1);
      expect(places.map(({ column }) => column)).toEqual(depthsOf(tree));
      expect(Math.max(...all.map(({ column }) => column))).toBe(columns - 1);
      expect(Math.max(...all.map(({ row }) => row))).toBe(rows - 1);
    }
  });

  it("puts the accepted path and the model's own token in one line, on top", () => {
    for (const tree of treesOf(24)) {
      const { places, own } = layOut(tree, true);
      expect(tree.path.map((node) => places[node])).toEqual(tree.path.map((_, column) => ({ column, row: 0 })));
      expect(own).toEqual({ column: tree.path.length, row: 0 });
    }
  });

  it("puts a guess without guesses behind it beside those behind another one", () => {
    // 0 ─┬ 1 ─┬ 3
    //    └ 2  └ 4
    const tree = { texts: [..."abcde"], parents: [-1, 0, 0, 1, 1], path: [0] };
    const sources = ["", ...Array(4).fill("suffix")];
    const { places, rows } = layOut({ ...tree, sources, estimates: [], chances: [] }, false);
    expect(places.map(({ row }) => row)).toEqual([0, 0, 1, 0, 1]);
    expect(rows).toBe(2);
  });

  it("has no link touch one of another parent", () => {
    for (const nodes of [8, 24, 64]) {
      for (const tree of treesOf(nodes)) {
        const { places } = layOut(tree, false);
        const spans = places.flatMap(({ column, row }, node) => {
          const rows = places.filter((_, child) => tree.parents[child] === node).map((place) => place.row);
          return rows.length > 0 ? [{ column, from: row, to: Math.max(...rows) }] : [];
        });
        for (const one of spans) {
          const beside = spans.filter((other) => other !== one && other.column === one.column);
          expect(beside.every((other) => other.from > one.to || other.to < one.from)).toBe(true);
        }
      }
    }
  });

  it("goes downwards depth first, and those who branch have rows of their own", () => {
    // 0 ─┬ 1 ─┬ 3
    //    │    └ 4
    //    └ 2 ── 5
    const tree: StepTree = {
      texts: [..."abcdef"],
      parents: [-1, 0, 0, 1, 1, 2],
      sources: ["", ...Array(5).fill("suffix")],
      estimates: Array(6).fill(0.5),
      chances: Array(6).fill(0.5),
      path: [0],
    };
    const rows = (path: number[]) => layOut({ ...tree, path }, false).places.map(({ row }) => row);
    expect(rows([0])).toEqual([0, 0, 2, 0, 1, 2]);
    expect(rows([0, 2, 5])).toEqual([0, 1, 0, 1, 2, 0]);
    expect(rows([0, 1, 4])).toEqual([0, 0, 2, 1, 0, 2]);
    expect(layOut(tree, false)).toMatchObject({ own: null, columns: 3, rows: 3 });
  });
});
