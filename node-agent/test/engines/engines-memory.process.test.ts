import { expect, test } from "vitest";
import type { EngineSpec } from "../../src/engines/engine.ts";
import { procTable } from "../../src/engines/launchers/process-table.ts";
import { ask, endpointPid, faultEngine, isAlive, kill, modelA, modelB, until, type Host } from "./engines-on-host.ts";
import { gpuPerTest, never, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();
const gpu = gpuPerTest(state);
let host: Host;

const gibibytes = (count: number) => count * (1 << 30);
const big = { memoryBytes: gibibytes(70) };

function open(...engines: EngineSpec[]): Host {
  host = gpu.open(engines);
  return host;
}

function told(event: string): boolean {
  return host.told.some(([name]) => name === event);
}

/** Resolves with the outcome of the promise, and shows at any time whether it has settled. */
function watch(promise: Promise<unknown>) {
  const watched = {
    ended: false,
    outcome: promise.then(
      () => "done",
      (error: Error) => error.message,
    ),
  };
  void watched.outcome.then(() => (watched.ended = true));
  return watched;
}

test("an engine starts only when the memory it needs is free", async () => {
  await gpu.set(60_000);
  const activation = watch(open(faultEngine(modelA, [], big)).engines.activate(modelA, never, quiet));
  await until("it waits", () => told("memoryAwaited"));
  expect(await host.handles.read()).toEqual([]);
  await gpu.set(200);
  expect(await activation.outcome).toBe("done");
});

test("memory that becomes free late delays the end of a retirement, and so the next start", async () => {
  const { engines } = open(faultEngine(modelA), faultEngine(modelB));
  await engines.activate(modelA, never, quiet);
  const pid = await endpointPid(host, modelA);
  await gpu.set(70_000, [[pid, 69_000]]);
  const phases: string[] = [];
  const retired = watch(engines.retire(modelA, (phase) => phases.push(phase)));
  await until("the engine is gone and its memory is awaited", () => phases.includes("memory"));
  expect(await isAlive(pid)).toBe(false);
  const next = watch(engines.activate(modelB, never, quiet));
  await gpu.set(30_000);
  await gpu.set(20_000);
  expect([retired.ended, next.ended]).toEqual([false, false]);
  await gpu.set(1_000);
  expect([await retired.outcome, await next.outcome]).toEqual(["done", "done"]);
  expect(told("memoryLate")).toBe(false);
});

test("after a crash the next engine waits for the memory, even if its pids are unknown", async () => {
  const { engines } = open(faultEngine(modelA), faultEngine(modelB));
  await engines.activate(modelA, never, quiet);
  await gpu.setSeen(host, 70_000);
  kill(await endpointPid(host, modelA), "SIGKILL");
  await until("its exit is noticed", () => told("engineStopped"));
  const next = watch(engines.retire(modelA, quiet).then(() => engines.activate(modelB, never, quiet)));
  await gpu.set(30_000);
  await gpu.set(20_000);
  expect([next.ended, await host.handles.read()]).toEqual([false, []]);
  await gpu.set(1_000);
  expect(await next.outcome).toBe("done");
  expect(told("memoryLate")).toBe(false);
});

test("after a failed start the next engine also waits for the memory", async () => {
  const { engines } = open(faultEngine(modelA, ["--never-ready"]), faultEngine(modelB));
  const patience = new AbortController();
  const failed = watch(engines.activate(modelA, patience.signal, quiet));
  await until("it runs", async () => (await host.handles.read()).length === 1);
  await gpu.setSeen(host, 70_000);
  patience.abort(new Error("too long"));
  await until("it is stopped", () => told("engineStopped"));
  const next = watch(engines.activate(modelB, never, quiet));
  expect([failed.ended, next.ended, await host.handles.read()]).toEqual([false, false, []]);
  await gpu.set(1_000);
  expect([await failed.outcome, await next.outcome]).toEqual([expect.stringContaining("too long"), "done"]);
});

test("memory that never becomes free is reported and does not block the slot forever", async () => {
  const { engines } = open(faultEngine(modelA));
  await engines.activate(modelA, never, quiet);
  await gpu.set(70_000, [[await endpointPid(host, modelA), 69_000]]);
  await engines.retire(modelA, quiet);
  expect(told("memoryLate")).toBe(true);
});

test.each([
  [0.75, 16_000, false],
  [0.75, 20_000, true],
  [0.5, 20_000, false],
])(
  "a sleeper must release %f of the 69000 that it held, and passes if it keeps %i",
  async (share, keptMebibytes, isLate) => {
    const spec = faultEngine(modelA, [], { sleepLevel: 1 });
    host = gpu.open([spec], { memoryReturnShare: share });
    await host.engines.activate(modelA, never, quiet);
    const pid = await endpointPid(host, modelA);
    await gpu.setSeen(host, 70_000, [[pid, 69_000]]);
    const after = () => void gpu.set(1_000 + keptMebibytes, [[pid, keptMebibytes]]);
    await host.engines.retire(modelA, (phase) => phase === "memory" && after());
    expect([told("memoryLate"), await isAlive(pid)]).toEqual([isLate, !isLate]);
  },
);

test("an engine whose sleep frees no memory is stopped", async () => {
  const { engines } = open(faultEngine(modelA, [], { sleepLevel: 1 }));
  await engines.activate(modelA, never, quiet);
  const pid = await endpointPid(host, modelA);
  await gpu.set(70_000, [[pid, 69_000]]);
  await engines.retire(modelA, quiet);
  expect(await isAlive(pid)).toBe(false);
  expect(host.told).toContainEqual(["engineSurprised", "a", modelA, "sleep", "its GPU memory did not come back"]);
});

test("the memory of a sleeper counts as free for its own waking", async () => {
  const { engines } = open(faultEngine(modelA, [], { ...big, sleepLevel: 1 }));
  await engines.activate(modelA, never, quiet);
  const pid = await endpointPid(host, modelA);
  await engines.retire(modelA, quiet);
  await gpu.setSeen(host, 10_000, [[pid, 9_500]]);
  await engines.activate(modelA, never, quiet);
  expect(await endpointPid(host, modelA)).toBe(pid);
  expect(told("memoryAwaited")).toBe(false);
});

test("a sleeper is stopped to make room for a requested engine", async () => {
  const { engines } = open(faultEngine(modelA, [], { sleepLevel: 1 }), faultEngine(modelB, [], big));
  await engines.activate(modelA, never, quiet);
  const pid = await endpointPid(host, modelA);
  await engines.retire(modelA, quiet);
  await gpu.setSeen(host, 10_000, [[pid, 9_500]]);
  const activation = watch(engines.activate(modelB, never, quiet));
  await until("the sleeper is stopped", async () => !(await isAlive(pid)));
  expect(told("sleeperEvicted")).toBe(true);
  await gpu.set(500);
  expect(await activation.outcome).toBe("done");
});

test("a foreign process that leaves no room fails the start with that reason, and is not touched", async () => {
  await gpu.set(50_000, [[process.pid, 50_000]]);
  const { engines, memory } = open(faultEngine(modelA, [], big));
  await expect(engines.activate(modelA, never, quiet)).rejects.toThrow(
    new RegExp(`processes that are not engines of this node hold 48.8 GiB \\(pid ${process.pid}\\)`),
  );
  expect(host.told.filter(([event]) => event === "foreignGpuProcess")).toEqual([
    ["foreignGpuProcess", "a", process.pid, 50_000 * (1 << 20)],
  ]);
  expect(await memory.foreignProcesses()).toMatchObject([{ pid: process.pid }]);
});

test("without a configured need, the memory that the engine held last decides whether a foreign process leaves enough", async () => {
  const { engines, memory } = open(faultEngine(modelA));
  await gpu.set(50_000, [[process.pid, 50_000]]);
  await engines.activate(modelA, never, quiet);
  expect(await memory.foreignProcesses(), "the foreign process is found").toMatchObject([{ pid: process.pid }]);
  await engines.stopAll();
  await gpu.setSeen(host, 0);
  await engines.activate(modelA, never, quiet);
  const pid = await endpointPid(host, modelA);
  await gpu.setSeen(host, 70_000, [[pid, 70_000]]);
  const retired = watch(engines.retire(modelA, quiet));
  await until("the engine is gone", async () => !(await isAlive(pid)));
  await gpu.set(0);
  await retired.outcome;
  await gpu.setSeen(host, 50_000, [[process.pid, 50_000]]);
  await expect(engines.activate(modelA, never, quiet)).rejects.toThrow(
    new RegExp(`are missing: processes that are not engines of this node hold 48\\.8 GiB \\(pid ${process.pid}\\)`),
  );
});

test("an external engine's own processes are not foreign, and others are", async () => {
  const starter = state.open({ engines: [] });
  const { pid, endpoint } = await starter.launchers.process.start(faultEngine(modelA, ["--child"]), "other" as never);
  await until("it listens", () =>
    ask(endpoint, "GET /health")
      .then(() => true)
      .catch(() => false),
  );
  const child = (await procTable.group(pid!)).find((one) => one !== pid)!;
  const { memory } = open({ ...faultEngine(modelA), launcher: { kind: "external", url: endpoint.origin } });
  await gpu.set(60_000, [
    [pid!, 10_000],
    [child, 10_000],
    [process.pid, 40_000],
  ]);
  expect(await memory.foreignProcesses()).toMatchObject([{ pid: process.pid }]);
  kill(-pid!, "SIGKILL");
  await until(
    "nothing listens, so the processes are unknown",
    async () => (await memory.foreignProcesses()).length === 0,
  );
});

test("a need that exceeds the slot's GPUs fails at once, and no sleeper is stopped for it", async () => {
  const { engines } = open(faultEngine(modelA, [], { memoryBytes: 2 ** 50 }));
  await expect(engines.activate(modelA, never, quiet)).rejects.toThrow(
    /^it needs 1048576\.0 GiB of GPU memory, and the slot's GPUs have \d/,
  );
  expect(told("memoryAwaited")).toBe(false);
});

test("an engine of this node is not foreign", async () => {
  const { engines, memory } = open(faultEngine(modelA, ["--child"]));
  await engines.activate(modelA, never, quiet);
  await gpu.set(50_000, [[await endpointPid(host, modelA), 50_000]]);
  expect(await memory.foreignProcesses()).toEqual([]);
});

test("a start that finds no room ends with its signal, or after its time limit", async () => {
  await gpu.set(60_000);
  const { engines } = open(faultEngine(modelA, [], big));
  const patience = new AbortController();
  const activation = watch(engines.activate(modelA, patience.signal, quiet));
  await until("it waits", () => told("memoryAwaited"));
  patience.abort(new Error("the time is over"));
  expect(await activation.outcome).toBe("the time is over");
  await expect(engines.activate(modelA, never, quiet)).rejects.toThrow(/GiB of GPU memory are missing, also after/);
});

test("without GPU measurements no start waits", async () => {
  host = state.open({ engines: [faultEngine(modelA, [], big)], gpus: [0] });
  await host.engines.activate(modelA, never, quiet);
  await host.engines.retire(modelA, quiet);
  expect(host.told.map(([event]) => event)).toEqual(["engineReady", "engineStopped"]);
});
