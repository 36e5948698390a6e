import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../src/race/outcome";
import { type Phase, Race } from "../../src/race/race";
import { delta, done, finished, PLAN, told } from "./fixtures";

const NOTHING = "Nothing was compared; change the race or try again.";

/** A race led up to a phase. */
function led(phase: Phase): Race {
  const race = new Race();
  if (phase === "ready") return race;
  race.start(PLAN, "plain");
  if (phase === "connecting") return race;
  race.hear({ type: "session.created" }, 0);
  if (phase === "warming") return race;
  race.hear(done(1), 1);
  if (phase === "plain") return race;
  race.hear(delta("One", { drafted: 0, accepted: 0, emitted: 1 }), 2);
  race.hear(done(1), 3);
  return race;
}

describe("Race", () => {
  it("warms the prompt, then runs one lane after the other", () => {
    const race = new Race();
    expect(told(race.start(PLAN, "plain"))).toEqual(["open"]);
    expect(told(race.hear({ type: "session.created" }, 0))).toEqual(["race-warm"]);
    expect(told(race.hear(done(1, "incomplete"), 10))).toEqual(["race-plain"]);
    expect(told(race.hear(delta("One", { drafted: 0, accepted: 0, emitted: 1 }), 20))).toEqual([]);
    expect(told(race.hear(done(1), 30))).toEqual(["race-speculating"]);
    race.hear(delta("One", { drafted: 0, accepted: 0, emitted: 1 }), 35);
    expect(told(race.hear(done(1), 40))).toEqual(["close"]);
    expect(race.phase).toBe("done");
    expect(race.lanes.plain?.total).toBe(20);
    expect(race.lanes.plain?.figures.ttft).toBe(10);
    expect(race.lanes.speculating?.total).toBe(10);
  });

  it("lets the other lane run first when asked", () => {
    const race = finished("Aye", "Aye", "speculating");
    expect(outcomeOf(race)?.first).toBe("speculating");
    expect(outcomeOf(race)?.total).toEqual({ plain: 400, speculating: 200 });
  });

  it("keeps the text of the warming out of the lanes, and thoughts in", () => {
    const race = led("warming");
    race.hear(delta("One", { drafted: 0, accepted: 0, emitted: 1 }), 1);
    race.hear(done(1), 2);
    race.hear({ type: "x_response.reasoning.delta", delta: "Hm." }, 3);
    race.hear(delta("One"), 4);
    expect(race.lanes.plain?.text).toBe("Hm.One");
  });

  it.each(["connecting", "warming", "plain", "speculating"] as const)(
    "stops while %s, and keeps what came",
    (phase) => {
      const race = led(phase);
      expect(race.running).toBe(true);
      expect(told(race.stop())).toEqual(["close"]);
      expect(race.phase).toBe("stopped");
      expect(race.lanes.plain?.text ?? "").toBe(phase === "speculating" ? "One" : "");
      expect(outcomeOf(race)).toBeNull();
      expect(race.hear(delta("late"), 9)).toEqual([]);
      expect(race.link("waiting", "late")).toEqual([]);
      expect(race.notice).toContain("Stopped");
    },
  );

  it.each(["connecting", "warming", "plain", "speculating"] as const)(
    "says what the server refused while %s",
    (phase) => {
      const race = led(phase);
      expect(told(race.hear({ type: "error", error: { message: "Too long; shorten it." } }, 9))).toEqual(["close"]);
      expect([race.phase, race.notice]).toEqual(["failed", `Too long; shorten it. ${NOTHING}`]);
    },
  );

  it.each(["warming", "plain", "speculating"] as const)("fails when a reply does while %s", (phase) => {
    const race = led(phase);
    const error = { message: "The engine failed; try again." };
    const response = { status: "failed", status_details: { error } } as const;
    expect(told(race.hear({ type: "response.done", response }, 9))).toEqual(["close"]);
    expect([race.phase, race.notice]).toEqual(["failed", `${error.message} ${NOTHING}`]);
  });

  it("has words of its own where the server has none", () => {
    const race = led("plain");
    race.hear({ type: "response.done", response: { status: "cancelled" } }, 9);
    expect(race.notice).toBe(`The server broke the reply off and did not say why. ${NOTHING}`);
  });

  it.each(["warming", "plain", "speculating"] as const)("ends when the connection drops while %s", (phase) => {
    const race = led(phase);
    expect(told(race.link("waiting", "The server is restarting; trying again in a moment."))).toEqual(["close"]);
    expect(race.phase).toBe("failed");
    expect(race.notice).toContain("connection was lost");
  });

  it("goes on trying before it has begun, and says why it waits", () => {
    const race = led("connecting");
    expect(race.link("waiting", "The server cannot be reached; trying again in a moment.")).toEqual([]);
    expect(race.notice).toContain("cannot be reached");
    race.link("open", "");
    race.hear({ type: "session.created" }, 5);
    expect([race.phase, race.notice]).toEqual(["warming", ""]);
  });

  it("ends where a key is needed", () => {
    const race = led("connecting");
    expect(told(race.link("locked", "Needs a key."))).toEqual(["close"]);
    expect([race.phase, race.notice]).toEqual(["failed", "Needs a key."]);
    expect(race.locked).toBe(true);
    race.start(PLAN, "plain");
    expect(race.locked).toBe(false);
  });

  it("begins anew after any end, and not before", () => {
    const race = finished();
    expect(told(race.start({ ...PLAN, seed: 6 }, "speculating"))).toEqual(["open"]);
    expect(race.lanes.plain).toBeNull();
    expect(race.start(PLAN, "plain")).toEqual([]);
    expect(race.plan?.seed).toBe(6);
    race.stop();
    expect(told(race.start(PLAN, "plain"))).toEqual(["open"]);
  });
});
