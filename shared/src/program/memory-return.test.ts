import { constants, PerformanceObserver } from "node:perf_hooks";
import { expect, test } from "vitest";
import { collectSoon, returnMemory } from "./memory-return.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";

test("memory is collected three times after each peak, once few streams are open for a while", async () => {
  const clock = new VirtualClock();
  let open = 0;
  let collections = 0;
  using _returning = returnMemory(
    clock,
    () => open,
    () => collections++,
  );
  const look = async (now: number, looks: number) => {
    open = now;
    await clock.advanceAsync(5_000 * looks);
    return collections;
  };
  expect(await look(499, 3)).toBe(0);
  expect(await look(0, 100)).toBe(0); // too few to matter
  expect(await look(10_000, 100)).toBe(0);
  expect(await look(2_501, 100)).toBe(0); // still many
  expect(await look(2_500, 1)).toBe(0);
  expect(await look(8_000, 1)).toBe(0); // a short gap
  expect(await look(2_000, 2)).toBe(1);
  expect(await look(1_900, 100)).toBe(3);
  expect(await look(0, 100)).toBe(6); // a peak again: the 2,000 remaining streams
  expect(await look(0, 100)).toBe(6);
});

test("V8 starts a full collection when it is requested", async () => {
  const kinds: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as { detail?: { kind: number } }[]) kinds.push(entry.detail!.kind);
  });
  observer.observe({ entryTypes: ["gc"] });
  collectSoon();
  await expect.poll(() => kinds, { timeout: 10_000 }).toContain(constants.NODE_PERFORMANCE_GC_MAJOR);
  observer.disconnect();
});
