import { expect, it } from "vitest";
import { News } from "../../src/shell/news";

it("says an outage once, whatever the seconds of each try, and its end", () => {
  const news = new News();
  expect(news.change("connecting", "")).toBe("");
  expect(news.change("open", "")).toBe("");
  expect(news.chip("tiny")).toBe("tiny");
  expect(news.change("waiting", "Lost; trying again in 2 seconds.")).toMatch(/^Lost/);
  expect(news.change("connecting", "")).toBe("");
  expect(news.sentence).toMatch(/^Lost/); // stands until the try has an outcome
  expect(news.change("waiting", "Lost; trying again in 4 seconds.")).toBe("");
  expect(news.sentence).toMatch(/4 seconds/);
  expect(news.chip("tiny")).toBe("Offline");
  expect(news.change("connecting", "")).toBe("");
  expect(news.change("open", "")).toBe("Connected again.");
  expect(news.sentence).toBe("");
});

it("says that a key is needed", () => {
  const news = new News();
  expect(news.change("locked", "Enter a key.")).toBe("Enter a key.");
  expect(news.chip("")).toBe("Key needed");
  expect(news.change("connecting", "")).toBe("");
  expect(news.sentence).toBe("");
});
