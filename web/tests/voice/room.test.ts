// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { describe, expect, it } from "vitest";
import type { FormValues } from "../../src/settings/parse";
import { asking, Room } from "../../src/voice/room";
import { Server } from "../../src/wire/server";

const VALUES: FormValues = {
  instructions: "Be a pirate.",
  temperature: "0.2",
  seed: "7",
  maxTokens: "40",
  topP: "",
  topK: "",
  minP: "",
  repetitionPenalty: "",
  speculation: false,
};

describe("asking", () => {
  it("takes the page's settings, and says that the reply is spoken", () => {
    expect(asking(VALUES)).toEqual({
      instructions: expect.stringMatching(/spoken aloud[\s\S]*\nBe a pirate\.$/),
      body: { temperature: 0.2, seed: 7, max_output_tokens: 40, speculation: { mode: "none" } },
    });
  });

  it("names a setting that is wrong", () => {
    expect(asking({ ...VALUES, temperature: "hot" })).toMatch(/temperature must be a number/);
  });
});

describe("Room", () => {
  it("does without ears and a voice where the browser has none", () => {
    const room = new Room(new Server("http://localhost/"), signal(VALUES), window);
    expect([room.microphone, room.synthesis]).toEqual([null, null]);
    expect(room.loop.state).toBe("idle");
  });

  it("neither listens nor plays unseen, and keeps what was said", () => {
    const room = new Room(new Server("http://localhost/"), signal(VALUES), window);
    room.loop.hear("How far is");
    room.replay.start({
      name: "One",
      about: "",
      turns: [{ partials: [{ at: 10_000, text: "later" }], breaksInAfter: null }],
    });
    const drawn = room.frames.tick.value;
    room.show(false);
    expect([room.replay.script, room.loop.pending.text]).toEqual([null, "How far is"]);
    room.frames.now();
    expect(room.frames.tick.value).toBe(drawn);
    room.show(true);
    expect(room.frames.tick.value).toBe(drawn + 1);
  });
});
