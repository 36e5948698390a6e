import { expect, it } from "vitest";
import { Writers } from "../../src/chat/writers";

it("tells whether a reply comes to another tab", async () => {
  const here = new Writers((id) => id === "mine");
  const there = new Writers((id) => id === "theirs");
  expect(await Promise.all([here.ask("theirs"), here.ask("mine"), there.ask("mine")])).toEqual([true, false, true]);
});
