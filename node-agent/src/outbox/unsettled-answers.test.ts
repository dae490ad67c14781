import { beforeEach, expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { numberOf, usageRecord } from "../../test/outbox/usage-records.ts";
import { UnsettledAnswers } from "./unsettled-answers.ts";

let clock: VirtualClock;
let written: UsageRecord[];
let told: unknown[][];
let answers: UnsettledAnswers;
beforeEach(() => {
  clock = new VirtualClock();
  written = [];
  told = [];
  answers = new UnsettledAnswers({
    clock,
    append: async (record) => void written.push(record),
    events: { answersVoided: (...args) => told.push(args) },
  });
  answers.dataConnections("one", 2);
  answers.linkUp("one");
  for (const number of [1, 2, 3]) answers.finished("one", usageRecord(number));
});

const numbers = () => written.map(numberOf);

function killRouter(): void {
  answers.dataConnections("one", 0);
  answers.linkDown("one", false);
}

test("answers that a dead router had not settled are void after 30 s, and settled answers are not", async () => {
  answers.settled("one", [usageRecord(2)]);
  killRouter();
  await clock.advanceAsync(29_900);
  expect(written).toEqual([]);
  await clock.advanceAsync(200);
  expect(written).toEqual([
    { ...usageRecord(1), outcome: "void", promptTokens: 0, completionTokens: 0 },
    { ...usageRecord(3), outcome: "void", promptTokens: 0, completionTokens: 0 },
  ]);
  expect(told).toEqual([["one", 2]]);
  expect([answers.size, clock.pending]).toEqual([0, 0]);
});

test("they are void at once if another router answers at the address", async () => {
  killRouter();
  answers.linkUp("two");
  answers.replaced("one");
  await clock.advanceAsync(0);
  expect(numbers()).toEqual([1, 2, 3]);
  expect(clock.pending).toBe(0);
});

test("a router that links again, or ended its link in order, has voided unreceived answers itself", async () => {
  killRouter();
  await clock.advanceAsync(20_000);
  answers.linkUp("one");
  answers.finished("one", usageRecord(4));
  answers.linkDown("one", true);
  await clock.advanceAsync(100_000);
  expect([written, answers.size]).toEqual([[], 0]);
});

test("a router whose data connections are up is not dead, however long its link is down", async () => {
  answers.linkDown("one", false);
  answers.replaced("one");
  await clock.advanceAsync(100_000);
  expect([written, answers.size]).toEqual([[], 3]);
  answers.dataConnections("one", 0);
  await clock.advanceAsync(30_000);
  expect(numbers()).toEqual([1, 2, 3]);
});

test("answers that finish while the router is away are included", async () => {
  killRouter();
  await clock.advanceAsync(10_000);
  answers.finished("one", usageRecord(4));
  await clock.advanceAsync(20_000);
  expect(numbers()).toEqual([1, 2, 3, 4]);
});

test("an agent that stops voids the answers of a dead router, and none of a living router", async () => {
  answers.linkUp("two");
  answers.finished("two", usageRecord(9));
  killRouter();
  await answers[Symbol.asyncDispose]();
  expect(numbers()).toEqual([1, 2, 3]);
  expect(clock.pending).toBe(0);
});

test("settling an unknown answer does no harm, and the number of kept answers is limited", () => {
  answers.settled("nobody", [usageRecord(1)]);
  for (let number = 0; number < 100_100; number++) answers.finished("one", usageRecord(number));
  expect(answers.size).toBe(100_000);
});
