import { expect, test } from "vitest";
import { Sent } from "../../src/wire/sent";

test("an error finds what its event was for, and only that", () => {
  const sent = new Sent<"ask" | "cancel">("page");
  const plain = sent.named({ type: "x" });
  const ask = sent.named({ type: "y", more: 1 }, "ask");
  expect([plain, ask]).toEqual([
    { type: "x", event_id: "page_1" },
    { type: "y", more: 1, event_id: "page_2" },
  ]);
  expect(["page_1", "page_2", "other_2", "", null, undefined].map((id) => sent.purpose(id))).toEqual([
    null,
    "ask",
    null,
    null,
    null,
    null,
  ]);
});

test("a purpose may become another, or be over, and ids are never given twice", () => {
  const sent = new Sent<"turn" | "typing">("page");
  sent.named({ type: "x" }, "typing");
  sent.named({ type: "x" }, "turn");
  sent.become("typing", "turn");
  expect(sent.purpose("page_1")).toBe("turn");
  sent.settle("typing");
  expect(sent.purpose("page_2")).toBe("turn");
  sent.settle("turn");
  expect(sent.purpose("page_1")).toBeNull();
  sent.named({ type: "x" }, "typing");
  sent.clear();
  expect(sent.purpose("page_3")).toBeNull();
  expect(sent.named({ type: "x" }).event_id).toBe("page_4");
});
