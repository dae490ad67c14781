/** Sleeping engines keep some GPU memory. They are stopped if another engine needs it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import type { EngineSpec } from "../../src/engines/engine.ts";
import { endpointPid, faultEngine, isAlive, modelA, modelB, until, type Host } from "./engines-on-host.ts";
import { gpuPerTest, never, quiet, statePerTest } from "./engines-per-test.ts";

const modelC = asId<ModelId>("model-c");
const mebibytes = (count: number) => count * (1 << 20);
const sleeps = { sleepLevel: 1 } as const;

const state = statePerTest();
const gpu = gpuPerTest(state);
const open = (...engines: EngineSpec[]) => gpu.open(engines);

/** Retires the model's engine, and sets the GPU memory once it sleeps. */
async function retire({ engines }: Host, model: ModelId, ...after: Parameters<typeof gpu.set>): Promise<void> {
  const phases: string[] = [];
  const retired = engines.retire(model, (phase) => phases.push(phase));
  await until("its memory is awaited", () => phases.includes("memory"));
  await gpu.set(...after);
  await retired;
}

async function keeps(host: Host, ...expected: (readonly [ModelId, number])[]): Promise<void> {
  await expect
    .poll(() => host.engines.sleepers().map(({ model, keptBytes }) => [model, keptBytes]), { timeout: 10_000 })
    .toEqual(expected.map(([model, kept]) => [model, mebibytes(kept)]));
}

function told(host: Host, event: string): unknown[] {
  return host.told.filter(([name]) => name === event).map(([, , model]) => model);
}

/** In mebibytes. */
interface Held {
  readonly awake: number;
  readonly asleep: number;
}

/** Runs the model's engine and puts it to sleep, while other sleepers hold memory. */
async function runAndSleep(host: Host, model: ModelId, held: Held, others: readonly [number, number][] = []) {
  await host.engines.activate(model, never, quiet);
  const pid = await endpointPid(host, model);
  const ofOthers = others.reduce((sum, [, used]) => sum + used, 0);
  await gpu.setSeen(host, ofOthers + held.awake, [...others, [pid, held.awake]]);
  await retire(host, model, ofOthers + held.asleep, [...others, [pid, held.asleep]]);
  return pid;
}

/** Runs the engines of A and B and puts both to sleep, A first. */
async function bothAsleep(host: Host, ofA: Held, ofB: Held): Promise<[a: number, b: number]> {
  const a = await runAndSleep(host, modelA, ofA);
  const b = await runAndSleep(host, modelB, ofB, [[a, ofA.asleep]]);
  await keeps(host, [modelA, ofA.asleep], [modelB, ofB.asleep]);
  return [a, b];
}

test("a sleeper's memory is the memory that nvidia-smi reports for its processes", async () => {
  const host = open(faultEngine(modelA, [], sleeps));
  const pid = await runAndSleep(host, modelA, { awake: 69_000, asleep: 2_500 });
  await keeps(host, [modelA, 2_500]);
  await gpu.setSeen(host, 3_500, [[pid, 2_600]]);
  host.close();
  const next = open(faultEngine(modelA, [], sleeps));
  await next.engines.readopt();
  await keeps(next, [modelA, 2_600]);
  expect(await endpointPid(next, modelA)).toBe(pid);
});

test("if nvidia-smi knows no pids, it is the memory that did not become free, whatever another sleeper keeps", async () => {
  const host = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, [], sleeps));
  const turn = async (model: ModelId, usedAwake: number, usedAsleep: number) => {
    await host.engines.activate(model, never, quiet);
    await gpu.setSeen(host, usedAwake);
    await retire(host, model, usedAsleep);
  };
  await gpu.setSeen(host, 1_000);
  await turn(modelA, 70_000, 3_500);
  await keeps(host, [modelA, 2_500]);
  await turn(modelB, 63_500, 7_500);
  await keeps(host, [modelA, 2_500], [modelB, 4_000]);
  await turn(modelA, 74_000, 7_500);
  await keeps(host, [modelB, 4_000], [modelA, 2_500]);
  expect(told(host, "engineStopped")).toEqual([]);
});

test("an engine without a configured need needs as much as in its last run, and its own sleep does not count against it", async () => {
  const host = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, [], sleeps));
  const pids = await bothAsleep(host, { awake: 70_000, asleep: 1_000 }, { awake: 70_000, asleep: 2_000 });
  await host.engines.activate(modelA, never, quiet);
  expect([told(host, "sleeperEvicted"), told(host, "memoryAwaited")]).toEqual([[], []]);
  expect(await Promise.all(pids.map(isAlive))).toEqual([true, true]);
});

test("a sleeper in the way is stopped, and starts cold when requested", async () => {
  const host = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, [], sleeps));
  const [a, b] = await bothAsleep(host, { awake: 79_000, asleep: 1_000 }, { awake: 60_000, asleep: 6_000 });
  const activation = host.engines.activate(modelA, never, quiet);
  await until("the other one is stopped", async () => !(await isAlive(b)));
  await gpu.set(1_000, [[a, 1_000]]);
  await activation;
  expect([await endpointPid(host, modelA), told(host, "sleeperEvicted")]).toEqual([a, [modelB]]);
  await gpu.setSeen(host, 79_000, [[a, 79_000]]);
  await retire(host, modelA, 1_000, [[a, 1_000]]);
  await host.engines.activate(modelB, never, quiet);
  expect(host.told.filter(([event]) => event === "engineReady").map(([, , model, how]) => [model, how])).toEqual([
    ...[
      [modelA, "started"],
      [modelB, "started"],
    ],
    ...[
      [modelA, "woken"],
      [modelB, "started"],
    ],
  ]);
});

test("the sleeper that has slept longest is stopped first, and only as many as necessary", async () => {
  const big = { memoryBytes: mebibytes(75_000) };
  const host = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, [], sleeps), faultEngine(modelC, [], big));
  const [a, b] = await bothAsleep(host, { awake: 60_000, asleep: 4_000 }, { awake: 60_000, asleep: 4_000 });
  const activation = host.engines.activate(modelC, never, quiet);
  await until("the first one is stopped", async () => !(await isAlive(a)));
  await gpu.set(4_000, [[b, 4_000]]);
  await activation;
  expect([await isAlive(b), told(host, "sleeperEvicted")]).toEqual([true, [modelA]]);
});

test("the next agent knows which has slept longest, whatever the names of the handles", async () => {
  const host = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, [], sleeps));
  await host.engines.activate(modelA, never, quiet);
  await host.engines.activate(modelB, never, quiet);
  await host.engines.activate(modelA, never, quiet);
  await host.engines.retire(modelA, quiet);
  for (let life = 1; life <= 2; life++) {
    const next = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, [], sleeps));
    await next.engines.readopt();
    expect(next.engines.sleepers().map(({ model }) => model)).toEqual([modelB, modelA]);
    next.close();
  }
});

test("the next agent knows the need of an engine that no longer runs, unless a need is configured", async () => {
  const host = open(faultEngine(modelA));
  await host.engines.activate(modelA, never, quiet);
  await gpu.setSeen(host, 70_000, [[await endpointPid(host, modelA), 70_000]]);
  await retire(host, modelA, 0);
  host.close();
  const needOf = async (spec: EngineSpec) => {
    const next = open(spec);
    expect(await next.engines.readopt()).toBeUndefined();
    return next.memory.needOf(spec);
  };
  expect(await needOf(faultEngine(modelA))).toBe(mebibytes(70_000));
  expect(await needOf(faultEngine(modelA, ["--child"]))).toBeUndefined();
  expect(await needOf(faultEngine(modelB))).toBeUndefined();
});

test("a learned need does not fail a start: if no process is seen in the way, the engine is tried", async () => {
  const host = open(faultEngine(modelA), faultEngine(modelB, [], sleeps));
  await host.engines.activate(modelA, never, quiet);
  await gpu.setSeen(host, 70_000, [[await endpointPid(host, modelA), 70_000]]);
  await retire(host, modelA, 0);
  const pid = await runAndSleep(host, modelB, { awake: 70_000, asleep: 2_000 });
  await keeps(host, [modelB, 2_000]);
  await gpu.setSeen(host, 40_000, [[pid, 2_000]]);
  await host.engines.activate(modelA, never, quiet);
  expect([told(host, "memoryAwaited"), told(host, "sleeperEvicted")]).toEqual([[modelA], []]);
});

test("an engine that reports missing memory gets the sleepers' memory, or else fails with the processes that hold it", async () => {
  const starts = join(state.directory, "starts");
  await writeFile(starts, "");
  const needy = faultEngine(modelB, ["--oom-while", starts]);
  const host = open(faultEngine(modelA, ["--starts", starts], sleeps), needy);
  const pid = await runAndSleep(host, modelA, { awake: 70_000, asleep: 2_000 });
  await keeps(host, [modelA, 2_000]);
  await host.engines.activate(modelB, never, quiet);
  expect([await isAlive(pid), told(host, "sleeperEvicted")]).toEqual([false, [modelA]]);
  await host.engines.retire(modelB, quiet);

  await writeFile(starts, `${process.pid}\n`);
  await gpu.setSeen(host, 0);
  await expect(host.engines.activate(modelB, never, quiet)).rejects.toThrow(/^exit code 1$/);
  await gpu.set(50_000, [[process.pid, 50_000]]);
  await expect(host.engines.activate(modelB, never, quiet)).rejects.toThrow(
    `exit code 1; processes that are not engines of this node hold 48.8 GiB (pid ${process.pid})`,
  );
});

test("a broken engine does not cause a sleeper to be stopped", async () => {
  const host = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, ["--exit", "1"]));
  await host.engines.activate(modelA, never, quiet);
  await host.engines.retire(modelA, quiet);
  await expect(host.engines.activate(modelB, never, quiet)).rejects.toThrow("exit code 1");
  expect(host.engines.sleepers()).toHaveLength(1);
});
