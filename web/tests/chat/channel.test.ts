import { afterEach, expect, it, vi } from "vitest";
import { channel } from "../../src/chat/channel";

afterEach(() => vi.unstubAllGlobals());

it("carries words to the others, and not back", async () => {
  const heard: string[] = [];
  const one = channel<string>("x", (word) => heard.push(`one: ${word}`));
  channel<string>("x", (word) => heard.push(`two: ${word}`));
  one.tell("Hi");
  await vi.waitFor(() => expect(heard).toEqual(["two: Hi"]));
});

it("is silent where the browser forbids it", () => {
  vi.stubGlobal(
    "BroadcastChannel",
    class {
      constructor() {
        throw new DOMException("no", "SecurityError");
      }
    },
  );
  channel("x", () => {}).tell("Hi");
});
