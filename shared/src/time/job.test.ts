import { expect, test } from "vitest";
import { settle, VirtualClock } from "../testing/virtual-clock.ts";
import { createJobs } from "./job.ts";

function play(random = () => 0.5) {
  const clock = new VirtualClock(0);
  const told: string[] = [];
  const job = createJobs(clock, random, {
    jobRan: (name) => void told.push(`${name} ran at ${clock.now()}`),
    jobFailed: (name, error) => void told.push(`${name}: ${(error as Error).message} at ${clock.now()}`),
  });
  return { clock, told, job };
}

test("a job runs repeatedly, even after a failure, and reports each run by its name", async () => {
  const { clock, told, job } = play();
  let runs = 0;
  await using _ = job("sweep", 1_000, () => {
    if (++runs === 2) throw new Error("broken");
  });
  await clock.advanceAsync(3_000);
  expect(told).toEqual(["sweep ran at 1000", "sweep: broken at 2000", "sweep ran at 3000"]);
});

test("the pauses of a job vary by up to a tenth", async () => {
  const chances = [0, 1, 0.5];
  const { clock, told, job } = play(() => chances.shift()!);
  await using _ = job("sweep", 1_000, () => {});
  await clock.advanceAsync(2_000);
  expect(told).toEqual(["sweep ran at 900", "sweep ran at 2000"]);
});

test("a job runs at its start and end if requested, and never twice at the same time", async () => {
  const { clock, told, job } = play();
  const runs: PromiseWithResolvers<void>[] = [];
  const work = () => (runs.push(Promise.withResolvers()), runs.at(-1)!.promise);
  const stored = job("store", 1_000, work, { atStart: true, atEnd: true });
  await clock.advanceAsync(500);
  const stopped = stored[Symbol.asyncDispose]();
  await settle();
  expect(runs.length).toBe(1);
  runs[0]!.resolve();
  await settle();
  expect(runs.length).toBe(2);
  runs[1]!.resolve();
  await stopped;
  expect(told).toEqual(["store ran at 500", "store ran at 500"]);
  expect(clock.pending).toBe(0);
});
