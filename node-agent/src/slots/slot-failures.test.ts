/** The rules of a slot whose engine fails to start, exits or is suspected, one test each. */
import { describe, expect, test } from "vitest";
import type { ModelId } from "@weiche/shared/ids.ts";
import { a, active, b, c, Play } from "../../test/slots/slot-play.ts";

describe("a failure", () => {
  test("of a start refuses the model's waiters, gives others their turn, and does not bring back the previous model", () => {
    const play = active(a, 1);
    play.requests(b, c);
    play.drain(1);
    play.news("stopped");
    expect(play.news("startFailed")).toEqual(["refuse 2 model_unavailable 2000", "start c"]);
    expect(play.news("startFailed")).toEqual(["refuse 3 model_unavailable 2000"]);
    expect(play.pass(100_000)).toEqual([]);
    expect(play.state).toBe("empty");
  });

  test("after a failure doubles the backoff up to thirty seconds", () => {
    const play = new Play();
    play.begin();
    for (const [ticket, backoffMs] of [2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
      expect(play.request(a)).toEqual(["start a"]);
      expect(play.news("startFailed")).toEqual([`refuse ${ticket + 1} model_unavailable ${backoffMs}`]);
      play.pass(backoffMs);
    }
  });

  test("after a run of thirty seconds counts as a first failure", () => {
    const play = active(a, 1);
    for (const [ranMs, backoffMs] of [
      [1_000, 0],
      [29_999, 4_000],
      [29_999, 8_000],
      [30_000, 0],
    ] as const) {
      play.pass(ranMs);
      play.exits(a);
      const began = [...play.news("stopped"), ...play.pass(Math.max(0, backoffMs - 1))];
      expect([began, play.pass(1)]).toEqual(backoffMs === 0 ? [["start a"], []] : [[], ["start a"]]);
      play.news("started");
    }
  });

  test.each([
    [14_000, "counts as one in a row with it", 4_000],
    [15_000, "counts as a first failure", 0],
  ])("after a failure and two turns of %i ms %s", (turnMs, _what, backoffMs) => {
    const play = active(a, 1);
    play.exits(a);
    const switched = (to: ModelId, ticket: number) => {
      play.request(to);
      play.news("stopped");
      expect(play.news("started")).toEqual([`admit ${ticket}`]);
      play.release(ticket);
      play.pass(turnMs);
    };
    switched(a, 2);
    switched(b, 3);
    switched(a, 4);
    play.exits(a);
    const began = [...play.news("stopped"), ...play.pass(Math.max(0, backoffMs - 1))];
    expect([began, play.pass(1)]).toEqual(backoffMs === 0 ? [["start a"], []] : [[], ["start a"]]);
  });

  test("to start in time gives up the start, and nothing begins until it has cleaned up", () => {
    const play = new Play();
    play.begin();
    play.request(a);
    expect(play.pass(60_000)).toEqual(["giveUp", "refuse 1 model_unavailable 2000"]);
    expect(play.request(b)).toEqual([]);
    expect(play.pass(19_999)).toEqual([]);
    expect(play.pass(1)).toEqual(["stop a for good"]);
    expect(play.news("stopped")).toEqual(["start b"]);
  });

  test("to start within a limit of zero gives up the start at once", () => {
    const play = new Play({ startMsMax: 0 });
    play.begin();
    play.request(a);
    expect(play.pass(0)).toEqual(["giveUp", "refuse 1 model_unavailable 2000"]);
  });

  test("to stop is retried, and nothing starts in between", () => {
    const play = active(a, 1);
    play.request(b);
    play.drain(1);
    expect(play.news("stopFailed")).toEqual(["refuse 2 model_unavailable 2000"]);
    expect(play.request(b)).toEqual(["refuse 3 model_unavailable 2000"]);
    expect(play.pass(2_000)).toEqual(["stop a for good"]);
    expect(play.pass(20_000)).toEqual([]);
    expect(play.state).toBe("failed a");
    expect(play.pass(4_000)).toEqual(["stop a for good"]);
    play.request(b);
    expect(play.news("stopped")).toEqual(["start b"]);
  });
});

describe("an engine that exits", () => {
  test("loses its requests and is restarted at once, while waiting and new requests are held", () => {
    const play = active(a, 2);
    play.request(a);
    expect(play.exits(a)).toEqual(["engineLost", "stop a for good"]);
    expect(play.request(a)).toEqual([]);
    expect(play.news("stopped")).toEqual(["start a"]);
    expect(play.news("started")).toEqual(["admit 3", "admit 4"]);
  });

  test("soon after its restart gets a backoff, in which its requests are refused", () => {
    const play = active(a, 3);
    play.exits(a);
    play.news("stopped");
    play.news("started");
    play.requests(a, a);
    expect(play.exits(a)).toEqual(["engineLost", "refuse 5 model_unavailable 4000", "stop a for good"]);
    play.news("stopped");
    expect(play.request(a)).toEqual(["refuse 6 model_unavailable 4000"]);
    expect(play.pass(4_000)).toEqual(["start a"]);
    expect(play.news("startFailed")).toEqual([]);
    expect(play.pass(8_000)).toEqual(["start a"]);
  });

  test("and fails to restart gets a backoff, and its waiters are refused", () => {
    const play = active(a, 2);
    play.exits(a);
    play.request(a);
    play.news("stopped");
    expect(play.news("startFailed")).toEqual(["refuse 3 model_unavailable 4000"]);
  });

  test("is not restarted if another model is requested meanwhile", () => {
    const play = active(a, 1);
    play.exits(a);
    play.request(b);
    expect(play.news("stopped")).toEqual(["start b"]);
    play.news("started");
    play.release(2);
    expect(play.pass(600_000)).toEqual([]);
    expect(play.state).toBe("active b");
  });

  test("or is suspected admits no requests, ends once it is idle, and is restarted", () => {
    const play = active(a, 2);
    play.news("suspected");
    expect(play.request(a)).toEqual([]);
    play.release(1);
    play.pass(20_000);
    expect(play.release(2)).toEqual(["stop a for good"]);
    expect(play.news("stopped")).toEqual(["start a"]);
    expect(play.news("started")).toEqual(["admit 3"]);
  });

  test("that is suspected again soon gets a backoff, in which its requests are refused", () => {
    const play = active(a, 1);
    play.news("suspected");
    play.request(a);
    play.release(1);
    play.news("stopped");
    play.news("started");
    expect(play.news("suspected")).toEqual([]);
    expect(play.request(a)).toEqual(["refuse 3 model_unavailable 4000"]);
    expect(play.release(2)).toEqual(["stop a for good"]);
    expect(play.request(a), "slightly later than the request before").toEqual(["refuse 4 model_unavailable 4100"]);
    expect(play.news("stopped")).toEqual([]);
    expect(play.pass(4_000)).toEqual(["start a"]);
  });

  test("under suspicion is replaced by the model of an older waiter", () => {
    const play = active(a, 1);
    play.request(b);
    play.news("suspected");
    expect(play.request(a)).toEqual([]);
    expect(play.release(1)).toEqual(["stop a for good"]);
    expect(play.news("stopped")).toEqual(["start b"]);
    expect(play.news("started")).toEqual(["admit 2"]);
  });
});
