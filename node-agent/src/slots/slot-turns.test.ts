/** Models that take turns, and requests for a model whose turn is over. */
import { describe, expect, test } from "vitest";
import { a, active, alone, b, c, Play } from "../../test/slots/slot-play.ts";
import { turnEstimateMs } from "./turn-estimate.ts";

/** Model b runs one request. One waiter for model a waited for `startMs` while b started. */
function secondTurn(startMs: number, limits = {}): Play {
  const play = active(a, 1, limits);
  play.request(b);
  play.drain(1);
  play.news("stopped");
  play.request(a);
  play.pass(startMs);
  expect(play.news("started")).toEqual(["admit 2"]);
  return play;
}

describe("a turn", () => {
  test("lasts ten seconds from the start of its engine, however long others waited for that start [B1 B7]", () => {
    const play = secondTurn(50_000);
    play.pass(9_999);
    expect(play.request(b)).toEqual(["admit 4"]);
    play.pass(1);
    expect(play.state).toBe("draining-closed b->a, a wait, 2 run");
  });

  test("lasts ten seconds from the first waiter if its model was active before [B1]", () => {
    const play = active(a, 1);
    play.pass(100_000);
    play.request(b);
    play.pass(9_999);
    expect(play.state).toBe("draining-open a->b, b wait, 1 run");
    play.pass(1);
    expect(play.state).toBe("draining-closed a->b, b wait, 1 run");
  });

  test("ends early when nothing runs and the residency is over [B7]", () => {
    const play = secondTurn(50_000);
    play.release(2);
    expect(play.pass(4_999)).toEqual([]);
    expect(play.pass(1)).toEqual(["stop b"]);
  });
});

describe("a request for a model whose drain is closed", () => {
  test("is held for its next turn, and admitted after earlier waiters for another model [B1 B7 S17.4]", () => {
    const play = active(a, 1);
    play.request(b);
    play.pass(10_000);
    expect(play.request(a)).toEqual([]);
    expect(play.request(c)).toEqual([]);
    expect(play.release(1)).toEqual(["stop a"]);
    expect(play.news("stopped")).toEqual(["start b"]);
    expect(play.news("started")).toEqual(["admit 2"]);
    play.pass(10_000);
    expect(play.release(2)).toEqual(["stop b"]);
    expect(play.news("stopped")).toEqual(["start a"]);
    expect(play.news("started")).toEqual(["admit 3"]);
  });

  test("is admitted at once when the waiters for the other model have left", () => {
    const play = active(a, 1);
    play.request(b);
    play.pass(10_000);
    play.request(a);
    expect(play.leave(2)).toEqual(["admit 3"]);
  });

  // The running answer takes another 10 s, the switch to b 10 s and its turn 20 s. The switch back took no time before.
  test.each([
    [40_000, []],
    [39_999, ["refuse 3 model_switching 15000"]],
  ] as const)("is held with %i ms left, or refused until the drain has ended: %j", (leftMs, expected) => {
    const own = active(a, 1);
    own.request(b);
    own.pass(10_000);
    expect(own.request(a, 1, alone, leftMs)).toEqual(expected);
    const ofSlot = active(a, 1, { waiterMsMax: leftMs });
    ofSlot.request(b);
    ofSlot.pass(10_000);
    expect(ofSlot.request(a)).toEqual(expected);
  });

  test("is refused until the drain is over if the slot is configured to refuse [B7 S17.4]", () => {
    const play = active(a, 1, { whileSwitching: "refuse" });
    play.request(b);
    play.pass(10_000);
    expect(play.request(a), "1.5 times the running time of the answer").toEqual(["refuse 3 model_switching 15000"]);
    play.release(1);
    expect(play.request(a)).toEqual([]);
  });
});

describe("the estimated time until a turn", () => {
  const estimate = (play: Play, model = a) => turnEstimateMs(play.slot, model, play.nowMs);

  test("includes the rest of a start, and the turn of the starting model", () => {
    const play = active(a, 1);
    play.request(b);
    play.drain(1);
    play.news("stopped");
    play.pass(4_000);
    expect(estimate(play, b)).toBe(6_000);
    expect(estimate(play, a), "6 s of the start and a turn of 20 s").toBe(26_000);
  });

  test("uses the measured lengths of turns and starts", () => {
    const play = secondTurn(3_000);
    play.release(2);
    play.pass(5_000);
    play.news("stopped");
    play.news("started");
    play.request(b);
    play.pass(10_000);
    expect([play.slot.turnMs.get(b), play.slot.switchMs.get(b)]).toEqual([5_000, 3_000]);
    expect(estimate(play), "10 s of a, then b starts and gets its turn, then a starts").toBe(10_000 + 3_000 + 5_000);
  });

  test("includes the turns of all models that come before", () => {
    const play = active(a, 1);
    play.requests(b, c);
    play.pass(10_000);
    expect(estimate(play)).toBe(10_000 + 2 * (10_000 + 20_000));
    expect(estimate(play, c)).toBe(10_000 + 30_000 + 10_000);
  });

  test("includes the rest of a backoff", () => {
    const play = new Play();
    play.begin();
    play.request(a);
    play.news("startFailed");
    expect(estimate(play)).toBe(2_000 + 10_000);
  });
});
