/** Tests ten minutes of usage from three routers at once. Every twentieth record reaches two of them. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeUsage, type WritersRun } from "./usage-writers.ts";

const seconds = Number(process.env["WEICHE_USAGE_SECONDS"] ?? 600);
const recordsPerSecond = 10_000;

test(
  "three routers write 10,000 usage records a second: all sums are exact, and records sent to two routers count once",
  async () => {
    const run = await writeUsage({ seconds, recordsPerSecond });
    say(run);
    expect(run.copied).toBeGreaterThanOrEqual(run.made.records / 20);
    expect(run).toMatchObject({ stored: run.made, wrongSums: 0, deadlocks: 0, failures: [] });
    expect(run).toMatchObject({ committed: run.made.records + run.copied, repeated: run.copied });
  },
  (seconds + 300) * 1_000,
);

test("without sorted rows the same routers deadlock", async () => {
  const preload = join(import.meta.dirname, "unsorted-rows-preload.ts");
  const run = await writeUsage({ seconds: 20, recordsPerSecond, preload });
  say(run);
  expect(run.deadlocks).toBeGreaterThan(0);
});

/** Prints the rate without checking it, because it depends on the machine. */
function say({ made, stored, failures, ...counts }: WritersRun): void {
  const { credits } = made;
  const records = { made: made.records, stored: stored.records, credits: [credits, stored.credits].map(String) };
  console.log(JSON.stringify({ cores: availableParallelism(), ...counts, ...records, failures: failures.length }));
}
