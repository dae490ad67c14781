/** The work of one engine: steps, growing contexts, prompts and the cache. */
import { expect, test } from "vitest";
import { EngineWork, type EngineSpeed } from "./engine-work.ts";
import { EventQueue } from "./event-queue.ts";

const plain: EngineSpeed = {
  step: { baseMs: 10, perRunningMs: 0, perTokenMs: 0 },
  prefillTokensPerSecond: 1_000,
  cacheTokens: Infinity,
};

/** Asks for each answer at its time. Returns the times at which the answers began and ended. */
function run(speed: EngineSpeed, asked: readonly (readonly [atMs: number, input: number, output: number])[]) {
  const clock = new EventQueue();
  const engine = new EngineWork(speed, clock);
  const times = asked.map(() => ({ beganMs: 0, endedMs: 0 }));
  for (const [index, [atMs, inputTokens, outputTokens]] of asked.entries())
    clock.after(atMs, () =>
      engine.add({
        ...{ inputTokens, outputTokens },
        began: () => (times[index]!.beganMs = clock.monotonicMs()),
        ended: () => (times[index]!.endedMs = clock.monotonicMs()),
      }),
    );
  while (clock.step());
  return times;
}

test("an answer takes its prompt's time and a step for each token", () => {
  expect(run(plain, [[0, 500, 100]])).toEqual([{ beganMs: 500, endedMs: 1_500 }]);
});

test("prompts are read one after the other", () => {
  const [, second] = run(plain, [
    [0, 500, 100],
    [100, 500, 100],
  ]);
  expect(second).toEqual({ beganMs: 1_000, endedMs: 2_000 });
});

test("a second answer slows the first by its part of each step", () => {
  const speed = { ...plain, step: { baseMs: 10, perRunningMs: 5, perTokenMs: 0 } };
  // 20 steps of 15 ms alone, then 30 steps of 20 ms together, then 20 steps of 15 ms alone.
  const [first, second] = run(speed, [
    [0, 0, 50],
    [300, 0, 50],
  ]);
  expect([first!.endedMs, second!.endedMs]).toEqual([900, 1_200]);
});

test("growing contexts slow each step, as a sum over single steps shows", () => {
  const speed = { ...plain, step: { baseMs: 10, perRunningMs: 0, perTokenMs: 0.01 } };
  const [only] = run(speed, [[0, 100, 1_000]]);
  let summedMs = 100;
  for (let step = 0; step < 1_000; step++) summedMs += 10 + 0.01 * (100 + step);
  expect(only!.endedMs / summedMs).toBeCloseTo(1, 3);
});

test("a request begins when its tokens fit into the cache", () => {
  const [, second] = run({ ...plain, cacheTokens: 250 }, [
    [0, 100, 100],
    [0, 100, 100],
  ]);
  expect(second!.beganMs).toBe(1_100 + 100);
});

test("an idle engine takes a request that exceeds its cache", () => {
  const [only] = run({ ...plain, cacheTokens: 10 }, [[0, 100, 100]]);
  expect(only!.endedMs).toBe(1_100);
});
