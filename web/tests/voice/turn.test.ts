import { expect, it } from "vitest";
import { Turn } from "../../src/voice/turn";

it("begins with the first words heard", () => {
  const turn = new Turn(40);
  expect([turn.begun, turn.heard, turn.ended, turn.firstText]).toEqual([40, 40, null, null]);
});

it("keeps the newest times of a turn that never ends", () => {
  const turn = new Turn(0);
  for (let at = 0; at < 1_000; at += 1) {
    turn.append(at);
    turn.prefilled(at, { type: "x_input_text.prefilled", tokens: at, cached_tokens: at - 1 });
  }
  expect(turn.appends).toHaveLength(256);
  expect(turn.ready).toHaveLength(256);
  expect([turn.appends[0], turn.appends.at(-1)]).toEqual([744, 999]);
  expect(turn.ready.at(-1)).toEqual({ at: 999, tokens: 999, cached: 998 });
});

it("takes what a server leaves out as nothing", () => {
  const turn = new Turn(0);
  turn.prefilled(1, { type: "x_input_text.prefilled" });
  expect(turn.ready).toEqual([{ at: 1, tokens: 0, cached: 0 }]);
  turn.finish(null);
  expect([turn.prompt, turn.cached]).toEqual([null, null]);
  turn.finish({ output_tokens: 1, input_tokens: 40, input_token_details: { cached_tokens: 32 } });
  expect([turn.prompt, turn.cached]).toEqual([40, 32]);
});
