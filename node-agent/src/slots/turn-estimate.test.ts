/** The standings of waiting requests: their positions, and the estimated times until they are admitted. */
import { describe, expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { a, active, b, c, Play } from "../../test/slots/slot-play.ts";
import { nextAndLastMs, standings } from "./turn-estimate.ts";

/** Position and seconds by ticket. */
const shown = (play: Play) =>
  Object.fromEntries(
    standings(play.slot, play.nowMs)
      .entries()
      .map(([ticket, { position, estimateMs }]) => [ticket, [position, estimateMs / 1_000]]),
  );

describe("a waiting request", () => {
  test("is admitted after the waiters before it, 5 s for each of two places [B9]", () => {
    const play = active(a, 2);
    play.requests(a, a, a);
    expect(shown(play)).toEqual({ 3: [1, 5], 4: [2, 10], 5: [3, 15] });
  });

  test("comes after accounts that used less, whenever it came [B9]", () => {
    const [heavy, light] = ["heavy", "light"].map((name) => asId<AccountId>(name)) as [AccountId, AccountId];
    const play = active(a, 2);
    for (let count = 0; count < 3; count++) play.request(a, 1, heavy);
    play.request(a, 1, light);
    const of = standings(play.slot, play.nowMs);
    expect([of.get(6)!.position, of.get(4)!.position]).toEqual([2, 3]);
    expect(play.release(1), "the first request of the heavy account came first").toEqual(["admit 3"]);
    expect(play.release(2)).toEqual(["admit 6"]);
  });

  test("is admitted after the switch, and waiters that exceed the places follow when places become free", () => {
    const play = active(a, 1);
    play.requests(b, b, b);
    play.drain(1);
    expect(shown(play), "10 s of the switch").toEqual({ 2: [1, 10], 3: [2, 10], 4: [3, 15] });
    play.news("stopped");
    play.pass(4_000);
    expect(shown(play)).toEqual({ 2: [1, 6], 3: [2, 6], 4: [3, 11] });
  });

  test("waits for its model's next turn if its place becomes free after the drain has closed [B9]", () => {
    const play = active(a, 2);
    play.request(b);
    play.pass(7_000);
    play.request(a);
    // A place becomes free in 5 s, and the drain closes in 3 s. The estimate is the rest of the turn, b's switch and
    // turn. Model a starts at once.
    expect(shown(play)[4]).toEqual([1, 13 + 10 + 20]);
  });

  test("gets its place in this turn if it came before the first request for the other model", () => {
    const play = active(a, 2);
    play.requests(a, b);
    play.pass(7_000);
    expect(shown(play)[3]).toEqual([1, 5]);
  });

  test("waits for running answers while the drain is open, although turns were short lately", () => {
    const play = active(a, 1, { minResidencyMs: 0 });
    play.pass(6_000);
    play.release(1);
    for (const model of [b, a]) {
      expect(play.requests(model)).toContainEqual(expect.stringMatching(/^stop/));
      play.news("stopped");
      play.news("started");
      if (model === b) play.release(2);
    }
    play.request(b);
    expect([play.slot.turnMs.get(a), play.slot.state.kind]).toEqual([0, "draining"]);
    expect(shown(play)[4]).toEqual([1, 6]);
  });

  test("waits for the turns of all models before its own [B9]", () => {
    const play = active(a, 1);
    play.requests(b, c);
    play.pass(10_000);
    expect(shown(play)).toEqual({ 2: [1, 10 + 10], 3: [1, 10 + 10 + 20 + 10] });
  });
});

test("the next and the last estimate of a model are the first and the last of its standings [B9]", () => {
  const play = active(a, 2);
  play.requests(a, a, a, b, b, b);
  play.request(b, 2);
  for (const model of [a, b]) {
    const own = play.slot.waiters.filter((waiter) => waiter.model === model);
    const tickets = new Set(own.map(({ ticket }) => ticket));
    const times = [...standings(play.slot, play.nowMs)]
      .filter(([ticket]) => tickets.has(ticket))
      .map(([, { estimateMs }]) => estimateMs);
    expect(nextAndLastMs(play.slot, own, play.nowMs)).toEqual([Math.min(...times), Math.max(...times)]);
  }
});
