/** How requests wait for places of an engine that has no more of them. */
import { describe, expect, test } from "vitest";
import { currentEpoch } from "./slot-state.ts";
import { a, active, b, endpoint, Play } from "../../test/slots/slot-play.ts";

describe("a request that finds its engine full", () => {
  test("waits in order of arrival, and who comes when a place is free has one at once", () => {
    const play = active(a, 2);
    play.requests(a, a);
    expect(play.release(2)).toEqual(["admit 3"]);
    expect(play.request(a)).toEqual([]);
    expect(play.release(1)).toEqual(["admit 4"]);
    expect(play.release(3)).toEqual(["admit 5"]);
    play.release(4);
    expect(play.request(a)).toEqual(["admit 6"]);
  });

  test("is refused beyond the bounds, and told how long those before it take", () => {
    const play = active(a, 2);
    play.pass(4_000);
    play.release(1);
    play.request(a);
    for (let count = 0; count < 4; count++) expect(play.request(a)).toEqual([]);
    // 4 s each, two at a time
    expect(play.request(a)).toEqual(["refuse 8 overloaded 8000"]);
    expect(play.pass(300_000)).toEqual([4, 5, 6, 7].map((ticket) => `refuse ${ticket} overloaded 1000`));
  });

  test("is told of the time for a place, not for a switch, if those for another model are refused with it", () => {
    const play = active(a, 2, { waiterMsMax: 20_000 });
    play.pass(4_000);
    play.release(1);
    play.requests(a, b, a);
    expect(play.pass(20_000)).toEqual(["refuse 4 overloaded 10000", "refuse 5 overloaded 1000"]);
  });

  test("is told 300 s at most, and a guess where nothing is known", () => {
    const play = active(a, 2);
    for (let count = 0; count < 4; count++) play.request(a);
    expect(play.request(a), "10 s each, two at a time").toEqual(["refuse 7 overloaded 20000"]);
    play.pass(1_000_000);
    play.release(1);
    for (let count = 0; count < 5; count++) play.request(a);
    expect(play.request(a)).toEqual(["refuse 13 overloaded 300000"]);
  });

  test("makes nobody wait longer who came before it for another model", () => {
    const play = active(a, 2, { waitersMax: 8 });
    play.requests(a, b, a);
    expect(play.release(1), "of those who came before").toEqual(["admit 3"]);
    play.pass(9_999);
    expect(play.state).toBe("draining-open a->b, ba wait, 2 run");
    play.pass(1);
    expect(play.release(2)).toEqual([]);
    expect(play.release(3)).toEqual(["stop a"]);
    play.news("stopped");
    expect(play.news("started")).toEqual(["admit 4"]);
    expect(play.release(4), "and it has its turn afterwards").toEqual(["stop b"]);
    play.news("stopped");
    expect(play.news("started")).toEqual(["admit 5"]);
  });

  test("goes before those for another model who came later, even when the drain is closed", () => {
    const play = active(a, 2, { waitersMax: 8 });
    play.requests(a, a, b);
    play.pass(10_000);
    expect(play.request(a)).toEqual(["refuse 6 model_switching 10000"]);
    expect(play.release(1)).toEqual(["admit 3"]);
    expect(play.release(2)).toEqual(["admit 4"]);
    play.release(3);
    expect(play.release(4)).toEqual(["stop a"]);
  });

  test("is refused when the engine is lost, and held when it is suspected for the first time", () => {
    const exits = active(a, 3);
    expect(exits.exits(a)).toEqual(["engineLost", "refuse 3 model_unavailable 2000", "stop a for good"]);
    const suspected = active(a, 3);
    expect(suspected.news("suspected")).toEqual([]);
    expect(suspected.release(1)).toEqual([]);
    expect(suspected.release(2)).toEqual(["stop a for good"]);
    expect(suspected.news("stopped")).toEqual(["start a"]);
    expect(suspected.news("started")).toEqual(["admit 3"]);
  });
});

describe("a request for several answers", () => {
  test("waits until each of them has a place, and nobody behind it goes first", () => {
    const play = active(a, 2);
    expect(play.request(a, 2)).toEqual([]);
    play.request(a);
    expect(play.release(1)).toEqual([]);
    expect(play.state).toBe("active a, aa wait, 1 run");
    expect(play.release(2)).toEqual(["admit 3"]);
    expect(play.state).toBe("active a, a wait, 2 run");
    expect(play.release(3)).toEqual(["admit 4"]);
  });

  test("no longer holds up the others when its client leaves", () => {
    const play = active(a, 1);
    play.request(a, 2);
    play.request(a);
    expect(play.leave(2)).toEqual(["admit 3"]);
  });

  test("has the engine for itself where it asks for more than there are places, and the engine does not say how many", () => {
    const play = active(a, 1);
    expect(play.request(a, 5)).toEqual([]);
    expect(play.release(1)).toEqual(["admit 2"]);
    expect(play.request(a)).toEqual([]);
    expect(play.state).toBe("active a, a wait, 2 run");
  });

  test("is rejected at once by an engine that can never give as many, or when that is known", () => {
    const play = new Play();
    play.begin();
    play.request(a, 3);
    play.request(a);
    const epoch = currentEpoch(play.slot.state)!;
    const told = play.event({ kind: "started", epoch, endpoint: { ...endpoint, parallelMax: 2 } });
    expect(told).toEqual(["reject 1: at most 2", "admit 2"]);
    expect(play.request(a, 4)).toEqual(["reject 3: at most 2"]);
    expect(play.request(a, 2)).toEqual([]);
  });
});
