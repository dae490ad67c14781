/** How requests wait for places of an engine that has no more of them. */
import { describe, expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { createSlot, currentEpoch } from "./slot-state.ts";
import { a, active, b, config, endpoint, Play } from "../../test/slots/slot-play.ts";

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
    expect(play.pass(20_000)).toEqual(["refuse 4 overloaded 14000", "refuse 5 overloaded 1000"]);
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
    expect(play.release(4)).toEqual([]);
    expect(play.pass(5_000), "and it has its turn afterwards").toEqual(["stop b"]);
    play.news("stopped");
    expect(play.news("started")).toEqual(["admit 5"]);
  });

  test("goes before those for another model who came later, even when the drain is closed", () => {
    const play = active(a, 2, { waitersMax: 8 });
    play.requests(a, a, b);
    play.pass(10_000);
    expect(play.request(a), "it waits for the next turn").toEqual([]);
    expect(play.release(1)).toEqual(["admit 3"]);
    expect(play.release(2)).toEqual(["admit 4"]);
    play.release(3);
    expect(play.release(4)).toEqual(["stop a"]);
  });

  test("is held when the engine is lost or suspected for the first time", () => {
    const exits = active(a, 3);
    expect(exits.exits(a)).toEqual(["engineLost", "stop a for good"]);
    expect(exits.news("stopped")).toEqual(["start a"]);
    expect(exits.news("started")).toEqual(["admit 3"]);
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

describe("accounts that wait for places of one engine", () => {
  const [large, small, other] = ["large", "small", "other"].map((name) => asId<AccountId>(name)) as [
    AccountId,
    AccountId,
    AccountId,
  ];
  /** An engine of so many places, with nothing running. */
  function idle(places: number): Play {
    const play = new Play({ waitersMax: 64 });
    const [first, ...engines] = config.engines;
    play.slot = createSlot(
      { ...config, limits: play.slot.limits, engines: [{ ...first!, maxConcurrent: places }, ...engines] },
      0,
    );
    play.begin();
    play.request(a, 1, other);
    play.news("started");
    play.release(1);
    return play;
  }
  const tokens = (completionTokens: number) => ({ promptTokens: 0, completionTokens });
  const ask = (play: Play, account: AccountId, ...answers: readonly number[]) =>
    answers.flatMap((count) => play.request(a, count, account));

  test("get places by what each has used, and within an account in order of arrival", () => {
    const play = idle(1);
    ask(play, large, 1, 1, 1);
    ask(play, small, 1, 1);
    expect(play.release(2, tokens(100)), "who has used nothing yet").toEqual(["admit 5"]);
    expect(play.release(5, tokens(500))).toEqual(["admit 3"]);
    expect(play.release(3, tokens(100)), "200 are less than 500").toEqual(["admit 4"]);
    expect(play.release(4, tokens(1_000))).toEqual(["admit 6"]);
  });

  test("have a reserve of an eighth, for those that hold no place", () => {
    const play = idle(16);
    ask(play, large, ...Array(20).fill(1));
    expect([play.view.running, play.view.waiting]).toEqual([14, 6]);
    expect(ask(play, small, 1)).toEqual(["admit 22"]);
    expect(ask(play, small, 1), "it holds a place now").toEqual([]);
    expect(play.release(2), "two stay free for the next account").toEqual([]);
  });

  test("hold nothing any more once their engine is gone", () => {
    const play = idle(16);
    ask(play, small, 1);
    play.exits(a);
    play.news("stopped");
    play.pass(2_000);
    play.news("started");
    ask(play, large, ...Array(20).fill(1));
    expect([play.view.running, play.view.waiting]).toEqual([14, 6]);
    expect(ask(play, small, 1), "from the reserve").toEqual(["admit 23"]);
  });

  test("have no reserve if nobody else has asked for an hour, nor on four places", () => {
    const play = idle(16);
    play.pass(3_500_000);
    ask(play, large, ...Array(17).fill(1));
    expect(play.view.running).toBe(14);
    expect(play.pass(100_000)).toEqual(["admit 16", "admit 17"]);
    const four = idle(4);
    ask(four, large, 1, 1, 1, 1);
    expect(four.view.running).toBe(4);
  });

  test("give nothing to the reserve once the drain is closed, since nobody may come any more", () => {
    const play = idle(16);
    ask(play, large, ...Array(15).fill(1));
    play.request(b, 1, small);
    expect(play.view.running).toBe(14);
    expect(play.pass(10_000)).toEqual(["admit 16"]);
  });

  test("overtake a request for many places, within its bound", () => {
    const play = idle(4);
    ask(play, large, 1);
    ask(play, small, 4);
    for (const count of [1, 2, 3, 4, 5]) ask(play, asId<AccountId>(`comer-${count}`), 1);
    expect(play.view.running, "three comers run beside the first request").toBe(4);
    expect(play.release(2), "a fourth one overtakes, and then no more").toEqual(["admit 7"]);
    expect([4, 5, 6, 7].map((ticket) => play.release(ticket))).toEqual([[], [], [], ["admit 3"]]);
    expect(play.release(3)).toEqual(["admit 8"]);
  });
});
