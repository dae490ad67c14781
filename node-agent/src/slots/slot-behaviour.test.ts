/** The rules of a slot, one test each. */
import { describe, expect, test } from "vitest";
import { a, active, b, c, Play } from "../../test/slots/slot-play.ts";

describe("a switch", () => {
  test("waits for running requests, however long, and then admits all waiters of the new model at once [B1 S17.2]", () => {
    const play = active(a, 1);
    play.requests(b, b);
    expect(play.pass(200_000)).toEqual([]);
    expect(play.state).toBe("draining-closed a->b, bb wait, 1 run");
    expect(play.release(1)).toEqual(["stop a"]);
    expect(play.news("stopped")).toEqual(["start b"]);
    expect(play.news("started")).toEqual(["admit 2", "admit 3"]);
  });

  test("begins as soon as nothing runs and the minimum residency is over", () => {
    const play = active(a, 1);
    play.pass(4_000);
    play.request(b);
    expect(play.release(1)).toEqual([]);
    expect(play.pass(999)).toEqual([]);
    expect(play.pass(1)).toEqual(["stop a"]);
  });

  test("begins ten seconds after the first waiter, even within the minimum residency [B1 S17.3]", () => {
    const play = active(a, 1, { minResidencyMs: 60_000 });
    play.release(1);
    play.request(b);
    expect(play.pass(9_999)).toEqual([]);
    expect(play.pass(1)).toEqual(["stop a"]);
  });

  test("is called off when the last waiter leaves, and the next waiter begins a new drain", () => {
    const play = active(a, 1);
    play.request(b);
    play.pass(9_000);
    play.leave(2);
    expect(play.state).toBe("active a, 1 run");
    play.request(b);
    play.pass(9_000);
    expect(play.request(a)).toEqual(["admit 4"]);
    play.pass(1_000);
    expect(play.request(a)).toEqual([]);
    expect(play.state).toBe("draining-closed a->b, ba wait, 2 run");
  });

  test("begins on time even if its first waiter has left", () => {
    const play = active(a, 1);
    play.request(b);
    play.pass(8_000);
    play.request(b);
    play.leave(2);
    play.pass(2_000);
    expect(play.state).toBe("draining-closed a->b, b wait, 1 run");
  });

  test("is for the oldest waiter at the time when the old engine is gone", () => {
    const play = active(a, 1);
    play.requests(b, c);
    play.drain(1);
    play.leave(2);
    expect(play.news("stopped")).toEqual(["start c"]);
  });

  test("leaves the slot empty if all waiters left during the stop", () => {
    const play = active(a, 1);
    play.request(b);
    play.drain(1);
    play.leave(2);
    expect(play.news("stopped")).toEqual([]);
    expect(play.state).toBe("empty");
  });

  test("is measured from the stop of the old engine to the start of the new one [S17.5]", () => {
    const play = active(a, 1);
    play.request(b);
    play.drain(1);
    play.pass(3_000);
    play.news("stopped");
    play.pass(4_000);
    play.news("started");
    play.request(a);
    play.drain(2);
    play.news("stopped");
    play.news("started");
    play.request(b);
    play.pass(10_000);
    expect(play.slot.switchMs.get(b)).toBe(7_000);
  });
});

test("the average of a model's switch times counts the newest switch with three tenths", () => {
  const play = new Play({ minResidencyMs: 0 });
  play.begin();
  const known = [20_000, 10_000, 40_000, 0].map((tookMs, round) => {
    const [ofA, ofB] = [2 * round + 1, 2 * round + 2];
    play.request(a);
    play.news("stopped");
    play.pass(30_000);
    play.news("started");
    play.request(b);
    play.pass(10_000);
    const before = play.slot.switchMs.get(b);
    play.release(ofA);
    play.news("stopped");
    play.pass(tookMs);
    play.news("started");
    play.release(ofB);
    return before;
  });
  expect(known).toEqual([undefined, 20_000, 17_000, 23_900]);
});

describe("waiters", () => {
  test("of a third model get their turn after the second, whose drain closes ten seconds after it became active", () => {
    const play = active(a, 1);
    play.requests(b, c, b);
    play.drain(1);
    play.news("stopped");
    expect(play.news("started")).toEqual(["admit 2", "admit 4"]);
    play.pass(9_999);
    expect(play.state).toBe("draining-open b->c, c wait, 2 run");
    play.pass(1);
    expect(play.state).toBe("draining-closed b->c, c wait, 2 run");
    play.release(2);
    expect(play.release(4)).toEqual(["stop b"]);
    expect(play.news("stopped")).toEqual(["start c"]);
  });

  test("that exceed the engine's places follow as places become free", () => {
    const play = active(a, 4);
    expect(play.state).toBe("active a, aa wait, 2 run");
    expect(play.release(1)).toEqual(["admit 3"]);
    expect(play.request(a)).toEqual([]);
    expect(play.state).toBe("active a, aa wait, 2 run");
  });

  test("follow after the drain has closed only if they came before the first waiter for another model", () => {
    const play = new Play({ waitersMax: 8 });
    play.begin();
    play.requests(a, a, a, b, a);
    play.pass(9_000);
    expect(play.news("started")).toEqual(["admit 1", "admit 2"]);
    play.pass(10_000);
    expect(play.release(1)).toEqual(["admit 3"]);
    expect(play.release(2)).toEqual([]);
    expect(play.release(3)).toEqual(["stop a"]);
    play.news("stopped");
    expect(play.news("started")).toEqual(["admit 4"]);
    expect(play.state).toBe("draining-open b->a, a wait, 1 run");
  });

  test("are refused when too many wait", () => {
    const play = active(a, 1);
    for (let count = 0; count < 4; count++) expect(play.request(b)).toEqual([]);
    expect(
      play.request(b),
      "10 s of the drain, 10 s each of its answers and the switch, and 15 s for the three of four that get no place at once",
    ).toEqual(["refuse 6 overloaded 45000"]);
    expect(play.request(c), "each model has its own queue").toEqual([]);
  });

  test("are refused when they have waited too long", () => {
    const play = active(a, 1);
    play.request(b);
    play.pass(1_000);
    play.request(b);
    expect(play.pass(299_000)).toEqual(["refuse 2 overloaded 20000"]);
    expect(play.state).toBe("draining-closed a->b, b wait, 1 run");
  });

  test("whose time is over take no place in the queue, even before the timer fires", () => {
    const play = active(a, 1);
    play.requests(b, b, b, b);
    play.nowMs += 300_000;
    expect(play.request(b)).toEqual([2, 3, 4, 5].map((ticket) => `refuse ${ticket} overloaded 20000`));
    expect(play.state).toBe("draining-closed a->b, b wait, 1 run");
  });
});

describe("an engine that an earlier agent was starting", () => {
  function found(loadingForMs: number): Play {
    const play = new Play();
    play.event({ kind: "readopt" });
    play.requests(a, b);
    expect(play.found({ model: a, loadingForMs })).toEqual(["start a"]);
    return play;
  }

  test("is waited for like one of this agent: its waiters are served and others get their turn", () => {
    const play = found(50_000);
    expect(play.state).toBe("starting a, ab wait");
    play.pass(5_000);
    expect(play.news("started")).toEqual(["admit 1"]);
    expect(play.state).toBe("draining-open a->b, b wait, 1 run");
  });

  test("has the rest of the time that a start may take", () => {
    const play = found(45_000);
    expect(play.pass(14_999)).toEqual([]);
    expect(play.pass(1)).toEqual(["giveUp", "refuse 1 model_unavailable 2000"]);
  });

  test("is probed for ten more seconds when that time is over, because it may have come up while no agent ran", () => {
    const play = found(3_600_000);
    expect(play.pass(9_999)).toEqual([]);
    expect(play.news("started")).toEqual(["admit 1"]);
    expect(play.slot.switchMs.size, "the time of this start is unknown").toBe(0);
  });

  test("shows since when it has been starting", () => {
    expect(found(50_000).view.switching).toMatchObject({ ageMs: 50_000 });
  });
});

describe("maintenance", () => {
  test("admits no request, begins no switch, and lets running requests end", () => {
    const play = active(a, 1);
    play.request(b);
    expect(play.maintenance(true)).toEqual(["refuse 2 maintenance 30000"]);
    expect(play.request(a)).toEqual(["refuse 3 maintenance 30000"]);
    play.release(1);
    expect(play.pass(100_000)).toEqual([]);
    play.maintenance(false);
    expect(play.request(a)).toEqual(["admit 4"]);
  });

  test("restarts a lost engine only afterwards", () => {
    const play = active(a, 1);
    play.maintenance(true);
    play.exits(a);
    play.news("stopped");
    expect(play.pass(100_000)).toEqual([]);
    expect(play.maintenance(false)).toEqual(["start a"]);
  });
});

describe("a prewarmed model", () => {
  test("is started once nothing runs, nothing waits and the residency is over, and is tried once", () => {
    const play = active(a, 1);
    play.event({ kind: "prewarm", model: b });
    expect(play.pass(20_000)).toEqual([]);
    play.request(c);
    play.leave(2);
    expect(play.release(1)).toEqual(["stop a"]);
    expect(play.news("stopped")).toEqual(["start b"]);
    play.news("startFailed");
    expect(play.pass(100_000)).toEqual([]);
  });

  test("comes after all waiters", () => {
    const play = active(a, 1);
    play.event({ kind: "prewarm", model: b });
    play.request(c);
    play.drain(1);
    expect(play.news("stopped")).toEqual(["start c"]);
    play.news("started");
    play.release(2);
    expect(play.pass(4_999)).toEqual([]);
    expect(play.pass(1)).toEqual(["stop c"]);
    expect(play.news("stopped")).toEqual(["start b"]);
  });
});
