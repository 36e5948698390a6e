// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { type Ending, Series } from "../../src/markdown/series";

interface Word {
  type: string;
  raw: string;
}

/** A series that is drawn, and what has been drawn since the last look. */
function series() {
  const host = document.createElement("div");
  let told: string[] = [];
  const views = new Series<Word>(host, ({ type }) => {
    const element = document.createElement(type);
    return {
      element,
      update: (word, ending) => {
        if (word.type !== type) return false;
        told.push(`${word.raw} ${ending}`);
        element.textContent = word.raw;
        return true;
      },
      shed: ({ raw }) => told.push(`shed to ${raw}`),
    };
  });
  const draw = (text: string, ending: Ending = "open") => {
    told = [];
    views.draw(words(text), ending);
    return told;
  };
  const shed = (text: string) => views.shed(words(text));
  return { host, draw, shed, told: () => told };
}

/** Elements of "b:one i:two". */
function words(text: string): Word[] {
  return text.split(" ").map((word) => ({ type: word.replace(/:.*/, ""), raw: word.replace(/.*:/, "") }));
}

describe("Series", () => {
  it("draws only what has changed", () => {
    const { host, draw } = series();
    expect(draw("b:one i:tw")).toEqual(["one done", "tw open"]);
    expect(draw("b:one i:two")).toEqual(["two open"]);
    expect(draw("b:one i:two")).toEqual([]);
    expect(draw("b:one i:two b:three", "done")).toEqual(["two done", "three done"]);
    expect(host.innerHTML).toBe("<b>one</b><i>two</i><b>three</b>");
  });

  it("takes back what turned out to be something else", () => {
    const { host, draw } = series();
    draw("b:one b:two b:three");
    expect(draw("b:one i:two")).toEqual(["two open"]);
    expect(host.innerHTML).toBe("<b>one</b><i>two</i>");
  });

  it("leaves on the page what it lets go of", () => {
    const { host, draw, shed, told } = series();
    draw("b:one b:two b:three");
    shed("b:ee");
    expect(told().at(-1)).toBe("shed to ee");
    expect(draw("b:ee i:four")).toEqual(["ee done", "four open"]);
    expect(host.innerHTML).toBe("<b>one</b><b>two</b><b>ee</b><i>four</i>");
  });

  it("takes the block behind a definition as a part of it that may come", () => {
    const { draw } = series();
    expect(draw("def:a p:b")).toEqual(["a open", "b open"]);
    expect(draw("def:a p:b p:c")).toEqual(["a done", "b done", "c open"]);
  });
});
