import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { ReadTurns } from "./read-turns.ts";

test("at most eight connections continue per turn, in the order of their arrival, and none is skipped [D10]", async () => {
  const turns = new ReadTurns();
  const read: number[] = [];
  for (let n = 0; n < 20; n++) turns.later(() => read.push(n));
  const counts = [];
  for (let n = 0; n < 3; n++) {
    await turn();
    counts.push(read.length);
  }
  expect(counts).toEqual([8, 16, 20]);
  expect(read).toEqual(Array.from({ length: 20 }, (_, n) => n));
  turns.later(() => read.push(20));
  await turn();
  expect(read.at(-1)).toBe(20);
});
