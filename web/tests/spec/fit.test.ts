import { describe, expect, it } from "vitest";
import { fitted, type Nodes } from "../../src/spec/fit";
import { layOut } from "../../src/spec/layout";
import { demoDeltas } from "./demo";

const ROOM = { width: 424, height: 240 };

/** So many guesses, each behind the one before it. */
function chain(size: number, width = 50): Nodes {
  const numbers = Array.from({ length: size }, (_, node) => node);
  const places = numbers.map((column) => ({ column, row: 0 }));
  return { places, parents: numbers.map((node) => node - 1), widths: numbers.map(() => width) };
}

function grown(nodes: number): Nodes[] {
  return demoDeltas(12, { nodes, seed: nodes }).map(({ spec }) => {
    const { tree } = spec.steps[0];
    return { places: layOut(tree, false).places, parents: tree.parents, widths: tree.texts.map(() => 60) };
  });
}

describe("fitted", () => {
  it("draws a small tree with its figures, in its size", () => {
    const { brief, scale, links, spots } = fitted(chain(2), ROOM, "whole");
    expect([brief, scale]).toEqual([false, 1]);
    expect(links).toEqual(["", "M136 27H160"]);
    expect(spots.map(({ x, width }) => [x, width])).toEqual([
      [8, 128],
      [160, 128],
    ]);
  });

  it("draws a long chain as words of full size, in lines", () => {
    const { brief, scale, spots, links } = fitted(chain(17), ROOM, "whole");
    expect([brief, scale]).toEqual([true, 1]);
    const tops = [...new Set(spots.map(({ y }) => y))];
    expect(tops).toHaveLength(3);
    expect(spots.map(({ y }) => tops.indexOf(y))).toEqual(spots.map(({ y }) => tops.indexOf(y)).sort());
    expect(spots.every(({ x, width }) => x >= 8 && x + width <= ROOM.width - 8)).toBe(true);
    const turned = links.filter((_, node) => node > 0 && spots[node]?.y !== spots[node - 1]?.y);
    expect(turned.every((path) => /^M[\d.]+ [\d.]+H[\d.]+V[\d.]+H[\d.]+V[\d.]+H[\d.]+$/.test(path))).toBe(true);
  });

  it("has the figures in lines too, where there is room", () => {
    const { brief, scale, spots } = fitted(chain(17), { width: 960, height: 240 }, "whole");
    expect([brief, scale]).toEqual([false, 1]);
    expect(new Set(spots.map(({ y }) => y)).size).toBe(3);
  });

  it.each([1, 4, 16, 33, 64])("has all of %i nodes in the room, none over another", (size) => {
    for (const nodes of grown(size)) {
      for (const extent of ["whole", "words"] as const) {
        const { spots, size: all, scale, height, brief } = fitted(nodes, ROOM, extent);
        expect(all.width * scale).toBeLessThanOrEqual(ROOM.width);
        expect(all.height * scale).toBeLessThanOrEqual(ROOM.height);
        if (extent === "words") expect(brief).toBe(true);
        for (const [index, one] of spots.entries()) {
          expect(one.x + one.width).toBeLessThan(all.width);
          expect(one.y + height).toBeLessThan(all.height);
          for (const other of spots.slice(0, index)) {
            const apart = Math.abs(one.y - other.y) >= height;
            expect(apart || one.x >= other.x + other.width || other.x >= one.x + one.width).toBe(true);
          }
        }
      }
    }
  });

  it("makes a tree of 16 nodes no smaller than can be read", () => {
    for (const nodes of grown(16)) expect(fitted(nodes, ROOM, "whole").scale).toBeGreaterThan(0.6);
  });

  it("draws all figures where these are wanted, whatever room they take", () => {
    const { brief, scale, size } = fitted(chain(17), ROOM, "large");
    expect([brief, scale]).toEqual([false, 1]);
    expect(size.width).toBeGreaterThan(ROOM.width);
  });

  it("ends where nothing fits", () => {
    expect(fitted(chain(256), { width: 20, height: 20 }, "whole").scale).toBeLessThan(0.2);
  });
});
