import { expect, test } from "vitest";
import { fewAtOnce } from "./few-at-once.ts";

test("few run at once, some wait in the order they came, the rest are refused; failures free their place", async () => {
  const few = fewAtOnce(4, 8, () => new Error("full"));
  const begun: number[] = [];
  let [running, runningMax] = [0, 0];
  const work = (n: number) => async () => {
    begun.push(n);
    runningMax = Math.max(runningMax, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    if (n % 3 === 0) throw new Error("failed");
    return n;
  };
  const outcomes = await Promise.allSettled(Array.from({ length: 15 }, (_, n) => few.run(work(n))));
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
  expect(runningMax).toBe(4);
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect(failures).toEqual([...Array<string>(4).fill("Error: failed"), ...Array<string>(3).fill("Error: full")]);
  expect(await few.run(work(20))).toBe(20);
});
