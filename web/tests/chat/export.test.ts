import { expect, it } from "vitest";
import { jsonFile, markdownFile } from "../../src/chat/export";
import type { KeptTurn } from "../../src/chat/turns";

const TURNS: KeptTurn[] = [
  { role: "user", text: "What is *this*? / really", state: "done", note: "" },
  { role: "assistant", text: "A **test**.", state: "stopped", note: "stopped · seed 7" },
];

it("writes Markdown for people", () => {
  expect(markdownFile(null, TURNS)).toEqual({
    name: "What-is-this-really.md",
    type: "text/markdown",
    content:
      "# What is *this*? / really\n\n## You\n\nWhat is *this*? / really\n\n## Model\n\nA **test**.\n\n*stopped · seed 7*\n",
  });
  expect(markdownFile("../..", TURNS).name).toBe("conversation.md");
});

it("writes what the model thought above what it said, and as no message", () => {
  const thinking: KeptTurn[] = [{ ...(TURNS[1] as KeptTurn), thoughts: "\nHm.\n# Well\n" }];
  expect(markdownFile("T", thinking).content).toContain("## Model\n\n> *Thoughts*\n>\n> Hm.\n> # Well\n\nA **test**.");
  const { messages, turns } = JSON.parse(jsonFile("T", thinking, "", "tiny").content);
  expect(messages).toEqual([{ role: "assistant", content: "A **test**." }]);
  expect(turns[0].thoughts).toBe("\nHm.\n# Well\n");
});

it("sends no API what this page could not read itself", () => {
  const unread: KeptTurn = { role: "assistant", text: "", state: "done", note: "newer", unread: {} };
  expect(JSON.parse(jsonFile("T", [...TURNS, unread], "", "tiny").content).messages).toHaveLength(TURNS.length);
  expect(markdownFile("T", [unread]).content).toContain("*newer*");
});

it("writes JSON that a chat API takes", () => {
  const { name, type, content } = jsonFile("Ünder", TURNS, "Be brief.", "tiny");
  expect([name, type]).toEqual(["Ünder.json", "application/json"]);
  expect(JSON.parse(content)).toMatchObject({
    title: "Ünder",
    model: "tiny",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: TURNS[0]?.text },
      { role: "assistant", content: "A **test**." },
    ],
    turns: [{ state: "done" }, { state: "stopped", note: "stopped · seed 7" }],
  });
  expect(JSON.parse(jsonFile(null, TURNS, "", "tiny").content).messages[0].role).toBe("user");
});
