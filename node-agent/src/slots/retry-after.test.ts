/** The `retry-after` of refused requests: a client that obeys it is admitted or held. */
import { expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { refusalError } from "./refusal.ts";
import { transition } from "./slot.ts";
import { a, active, alone, b, c, type Play } from "../../test/slots/slot-play.ts";

const toldMs = (words: readonly string[]) =>
  Number(
    words
      .find((word) => word.startsWith("refuse"))
      ?.split(" ")
      .at(-1),
  );

/** Returns the refusal of a request that comes to a closed drain. */
function refusalOf(play: Play, leftMs?: number) {
  play.request(b);
  play.pass(10_000);
  const event = { kind: "request", ticket: 9, model: a, account: alone, answers: 1, leftMs } as const;
  const [, effects] = transition(play.slot, event, play.nowMs);
  return effects as [Parameters<typeof refusalError>[0]];
}

const refusing = { whileSwitching: "refuse" } as const;

/** Sends a request as official client libraries do: two retries, after `retry-after` if it is below 60 s. */
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
  "two retries of an official client succeed behind an answer of %i s, whenever its drain closes",
  (answerSeconds) => {
    for (let waiterMs = 0; waiterMs + 10_000 < answerSeconds * 1_000; waiterMs += 1_000) {
      const play = active(a, 1, refusing);
      play.pass(waiterMs);
      play.request(b);
      play.pass(10_000);
      expect(
        asksWithRetries(play, answerSeconds * 1_000),
        `the request for the other model comes after ${waiterMs} ms`,
      ).toBe(true);
    }
  },
);

test("a closed drain returns the usual time of its answers as retry-after, at most 54 s", () => {
  const play = active(a, 2, refusing);
  play.pass(40_000);
  play.release(1);
  play.request(b);
  play.pass(10_000);
  expect(toldMs(play.request(a)), "usually 40 s, and one has run for 50 s").toBe(54_000);
});

test("requests that a closed drain refuses together return one after another within five seconds", () => {
  const play = active(a, 1, refusing);
  play.request(b);
  play.pass(10_000);
  const told = Array.from({ length: 100 }, () => toldMs(play.request(a)));
  expect(told.slice(0, 3)).toEqual([15_000, 15_100, 15_200]);
  expect(Math.max(...told)).toBe(20_000);
});

test("a request whose turn would come too late gets the time when it will be held, at most 59 s, and later ones get more [B7]", () => {
  const play = active(a, 1);
  play.requests(b, c);
  play.pass(10_000);
  const switchMs = new Map([a, b, c].map((model) => [model, 120_000]));
  play.slot = { ...play.slot, switchMs };
  const [refused] = play.request(a);
  expect(refused, "10 s of the running answer, three switches and two turns of 20 s exceed 300 s").toMatch(
    /switching 54000$/,
  );
  const told = Array.from({ length: 100 }, () => toldMs(play.request(a)));
  expect([told[0], Math.max(...told)]).toEqual([54_100, 59_000]);
  play.pass(10_000);
  play.release(1);
  play.news("stopped");
  play.pass(44_000);
  expect(play.request(a), "held").toEqual([]);
});

test("a request whose turn would come slightly too late returns once its turn comes in time", () => {
  const play = active(a, 1, { waiterMsMax: 20_000 });
  play.request(b);
  play.pass(10_000);
  expect(toldMs(play.request(a)), "the turn comes in 40 s, and the request may wait for 20 s").toBe(20_000);
});

test("the message for a request whose turn would come too late contains the estimated time of that turn [B7]", () => {
  const [effect] = refusalOf(active(a, 1), 39_999);
  expect(refusalError(effect).message).toBe(
    "The model's slot is switching to another model. The model's next turn is expected in 40 s.",
  );
  const [refusedAlways] = refusalOf(active(a, 1, refusing));
  expect(refusalError(refusedAlways).message).toBe("The model's slot is switching to another model.");
});

test("requests that a full queue refuses get one turn after another as retry-after", () => {
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

test("in a full queue, an account waits for at most as many requests of another account as it has itself", () => {
  const play = active(a, 2);
  for (let count = 0; count < 4; count++) play.request(a);
  expect(toldMs(play.request(a, 1, asId<AccountId>("other"))), "10 s each, one of them").toBe(5_000);
});

test("a full queue returns a longer time to a request for several answers, and never more than 300 s", () => {
  const play = active(a, 2);
  play.pass(4_000);
  play.release(1);
  play.request(a);
  for (let count = 0; count < 4; count++) play.request(a);
  const told = Array.from({ length: 200 }, () => toldMs(play.request(a, 2)));
  expect(told.slice(0, 3), "4 s each, both places").toEqual([8_000, 12_000, 16_000]);
  expect(Math.max(...told)).toBe(300_000);
});

test("a closed drain whose answers are about to end returns one second", () => {
  const play = active(a, 1, refusing);
  play.request(b);
  for (let ticket = 3; ticket < 53; ticket++) {
    play.pass(195);
    play.request(a);
    play.release(ticket === 3 ? 1 : ticket - 1);
  }
  play.pass(250);
  expect(toldMs(play.request(a)), "usually 195 ms, and one has run for 250 ms").toBe(1_000);
});

test("a full queue behind a closed drain returns the time of the next turn, not of a place in this turn", () => {
  const play = active(a, 1);
  play.request(b);
  play.pass(10_000);
  for (let count = 0; count < 4; count++) play.request(a);
  expect(
    toldMs(play.request(a)),
    "10 s for the running answer, two switches, 10 s for the other model, 15 s for three of four answers, two at a time",
  ).toBe(55_000);
});

test("if the queue of a suspected engine is full, `retry-after` includes the engine's restart", () => {
  const play = active(a, 1);
  play.news("suspected");
  for (let count = 0; count < 4; count++) play.request(a);
  expect(
    toldMs(play.request(a)),
    "the running answer, the restart and 5 s until a place is free, behind two requests for another model",
  ).toBe(25_000);
});
