/** What refused requests are told: when they come back then, they are admitted or held. */
import { expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { a, active, b, type Play } from "../../test/slots/slot-play.ts";

const toldMs = (words: readonly string[]) =>
  Number(
    words
      .find((word) => word.startsWith("refuse"))
      ?.split(" ")
      .at(-1),
  );

const refusing = { whileSwitching: "refuse" } as const;

/** Asks as official client libraries do: two more tries, after `retry-after` if it is below 60 s. */
function asksWithRetries(play: Play, endsAtMs: number): boolean {
  for (let attempt = 0; attempt < 3; attempt++) {
    const waitMs = toldMs(play.request(a));
    if (Number.isNaN(waitMs)) return true;
    expect(waitMs).toBeLessThan(60_000);
    const left = endsAtMs - play.nowMs;
    if (left > 0 && left <= waitMs) {
      play.pass(left);
      play.release(1);
      play.news("stopped");
      play.news("started");
      play.pass(waitMs - left);
    } else play.pass(waitMs);
  }
  return false;
}

test.each([10, 20, 42, 52, 60])(
  "two retries of an official client are enough behind an answer of %i s, whenever its drain closes",
  (answerSeconds) => {
    for (let waiterMs = 0; waiterMs + 10_000 < answerSeconds * 1_000; waiterMs += 1_000) {
      const play = active(a, 1, refusing);
      play.pass(waiterMs);
      play.request(b);
      play.pass(10_000);
      expect(asksWithRetries(play, answerSeconds * 1_000), `the other model is asked for after ${waiterMs} ms`).toBe(
        true,
      );
    }
  },
);

test("a closed drain tells what its answers usually take, and at most 59 s", () => {
  const play = active(a, 2, refusing);
  play.pass(40_000);
  play.release(1);
  play.request(b);
  play.pass(10_000);
  expect(toldMs(play.request(a)), "usually 40 s, and one has run for 50 s").toBe(59_000);
});

test("those that a closed drain refuses together come back one after the other, within five seconds", () => {
  const play = active(a, 1, refusing);
  play.request(b);
  play.pass(10_000);
  const told = Array.from({ length: 100 }, () => toldMs(play.request(a)));
  expect(told.slice(0, 3)).toEqual([15_000, 15_100, 15_200]);
  expect(Math.max(...told)).toBe(20_000);
});

test("those that a full queue refuses are told one turn after the other", () => {
  const play = active(a, 2);
  play.pass(4_000);
  play.release(1);
  play.request(a);
  for (let count = 0; count < 4; count++) play.request(a);
  expect(
    [1, 2, 3].map(() => toldMs(play.request(a))),
    "4 s each, two at a time",
  ).toEqual([8_000, 10_000, 12_000]);
});

test("an account waits in a full queue only for as many requests of another as it has itself", () => {
  const play = active(a, 2);
  for (let count = 0; count < 4; count++) play.request(a);
  expect(toldMs(play.request(a, 1, asId<AccountId>("other"))), "10 s each, one of them").toBe(5_000);
});
