/** How requests wait for places of a full engine. */
import { describe, expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { createSlot, currentEpoch } from "./slot-state.ts";
import { a, active, b, config, endpoint, Play } from "../../test/slots/slot-play.ts";

describe("a request that finds its engine full", () => {
  test("waits in order of arrival, and gets a place at once if one is free", () => {
    const play = active(a, 2);
    play.requests(a, a);
    expect(play.release(2)).toEqual(["admit 3"]);
    expect(play.request(a)).toEqual([]);
    expect(play.release(1)).toEqual(["admit 4"]);
    expect(play.release(3)).toEqual(["admit 5"]);
    play.release(4);
    expect(play.request(a)).toEqual(["admit 6"]);
  });

  test("is refused if it exceeds the limits, with the time of the requests before it", () => {
    const play = active(a, 2);
    play.pass(4_000);
    play.release(1);
    play.request(a);
    for (let count = 0; count < 4; count++) expect(play.request(a)).toEqual([]);
    // 4 s each, two at a time
    expect(play.request(a)).toEqual(["refuse 8 overloaded 8000"]);
    expect(play.pass(300_000)).toEqual([4, 5, 6, 7].map((ticket) => `refuse ${ticket} overloaded 1000`));
  });

  test("gets the time until a place is free, not until a switch, even if requests for another model are refused with it", () => {
    const play = active(a, 2, { waiterMsMax: 20_000 });
    play.pass(4_000);
    play.release(1);
    play.requests(a, b, a);
    expect(play.pass(20_000)).toEqual(["refuse 4 overloaded 14000", "refuse 5 overloaded 1000"]);
  });

  test("gets at most 300 s, and a default while no times are known", () => {
    const play = active(a, 2);
    for (let count = 0; count < 4; count++) play.request(a);
    expect(play.request(a), "10 s each, two at a time").toEqual(["refuse 7 overloaded 20000"]);
    play.pass(1_000_000);
    play.release(1);
    for (let count = 0; count < 5; count++) play.request(a);
    expect(play.request(a)).toEqual(["refuse 13 overloaded 300000"]);
  });

  test("does not delay requests for another model that came earlier [B1]", () => {
    const play = active(a, 2, { waitersMax: 8 });
    play.requests(a, b, a);
    expect(play.release(1), "requests of the active model that came before").toEqual(["admit 3"]);
    play.pass(9_999);
    expect(play.state).toBe("draining-open a->b, ba wait, 2 run");
    play.pass(1);
    expect(play.release(2)).toEqual([]);
    expect(play.release(3)).toEqual(["stop a"]);
    play.news("stopped");
    expect(play.news("started")).toEqual(["admit 4"]);
    expect(play.release(4)).toEqual([]);
    expect(play.pass(5_000), "and it gets its turn afterwards").toEqual(["stop b"]);
    play.news("stopped");
    expect(play.news("started")).toEqual(["admit 5"]);
  });

  test("goes before later requests for another model, even when the drain is closed [B1]", () => {
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
  test("waits until each answer has a place, and no request behind it goes first", () => {
    const play = active(a, 2);
    expect(play.request(a, 2)).toEqual([]);
    play.request(a);
    expect(play.release(1)).toEqual([]);
    expect(play.state).toBe("active a, aa wait, 1 run");
    expect(play.release(2)).toEqual(["admit 3"]);
    expect(play.state).toBe("active a, a wait, 2 run");
    expect(play.release(3)).toEqual(["admit 4"]);
  });

  test("no longer blocks the others when its client leaves", () => {
    const play = active(a, 1);
    play.request(a, 2);
    play.request(a);
    expect(play.leave(2)).toEqual(["admit 3"]);
  });

  test("gets the whole engine if it needs more places than there are and the engine reports no limit", () => {
    const play = active(a, 1);
    expect(play.request(a, 5)).toEqual([]);
    expect(play.release(1)).toEqual(["admit 2"]);
    expect(play.request(a)).toEqual([]);
    expect(play.state).toBe("active a, a wait, 2 run");
  });

  test("is rejected at once if the engine reports fewer places, or as soon as it does", () => {
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
  /** Returns an idle engine with this many places. */
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

  test("get places by their use, and within an account in order of arrival", () => {
    const play = idle(1);
    ask(play, large, 1, 1, 1);
    ask(play, small, 1, 1);
    expect(play.release(2, tokens(100)), "the account that has used nothing yet").toEqual(["admit 5"]);
    expect(play.release(5, tokens(500))).toEqual(["admit 3"]);
    expect(play.release(3, tokens(100)), "200 are less than 500").toEqual(["admit 4"]);
    expect(play.release(4, tokens(1_000))).toEqual(["admit 6"]);
  });

  test("leave an eighth of the places in reserve for accounts that hold none [B11]", () => {
    const play = idle(16);
    ask(play, large, ...Array(20).fill(1));
    expect([play.view.running, play.view.waiting]).toEqual([14, 6]);
    expect(ask(play, small, 1)).toEqual(["admit 22"]);
    expect(ask(play, small, 1), "the account holds a place now").toEqual([]);
    expect(play.release(2), "two places stay free for the next account").toEqual([]);
  });

  test("hold nothing after their engine is lost", () => {
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

  test("have no reserve if no other account sent a request for an hour, or on four places", () => {
    const play = idle(16);
    play.pass(3_500_000);
    ask(play, large, ...Array(17).fill(1));
    expect(play.view.running).toBe(14);
    expect(play.pass(100_000)).toEqual(["admit 16", "admit 17"]);
    const four = idle(4);
    ask(four, large, 1, 1, 1, 1);
    expect(four.view.running).toBe(4);
  });

  test("have no reserve once the drain is closed, because no new requests can come", () => {
    const play = idle(16);
    ask(play, large, ...Array(15).fill(1));
    play.request(b, 1, small);
    expect(play.view.running).toBe(14);
    expect(play.pass(10_000)).toEqual(["admit 16"]);
  });

  test("overtake a request for many places, within a limit", () => {
    const play = idle(4);
    ask(play, large, 1);
    ask(play, small, 4);
    for (const count of [1, 2, 3, 4, 5]) ask(play, asId<AccountId>(`comer-${count}`), 1);
    expect(play.view.running, "three newcomers run beside the first request").toBe(4);
    expect(play.release(2), "a fourth one overtakes, and then no more").toEqual(["admit 7"]);
    expect([4, 5, 6, 7].map((ticket) => play.release(ticket))).toEqual([[], [], [], ["admit 3"]]);
    expect(play.release(3)).toEqual(["admit 8"]);
  });
});
