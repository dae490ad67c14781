/**
 * Kills an agent in every state of its slot and phase of a switch. The next agent finds the awake engine and never restarts
 * it. Also kills engines while a slot waits for GPU memory, which a simulated nvidia-smi reports as used.
 */
import { rmSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isAlive, killed, until } from "../cluster/cluster.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";
import {
  a,
  ask,
  awakeOf,
  b,
  c,
  cluster,
  clusterToKill,
  d,
  faultFile,
  gpuSlot,
  held,
  holdsMemory,
  linked,
  maintenance,
  memoryAwaited,
  restartAgent,
  seen,
  served,
  slot,
  streaming,
} from "./agent-kills-rig.ts";

clusterToKill();

test("active with a running stream: the stream breaks, and the engine continues to serve [C3]", async () => {
  await served("model-a");
  const { pid } = a();
  const cut = await streaming("model-a");
  await restartAgent();
  expect(await cut.ended).toMatchObject({ ending: "error" });
  expect(await slot()).toMatchObject({ state: "active", active: "model-a" });
  await served("model-a");
  expect(a().pid).toBe(pid);
});

test.each(["draining-open", "draining-closed"])("%s: the awake engine is found again [C3]", async (state) => {
  await served("model-a");
  const { pid } = a();
  const cut = await streaming("model-a");
  const waiting = ask("model-b");
  await until(state, async () => (await slot()).state === state);
  await restartAgent();
  expect(await slot()).toMatchObject({ state: "active", active: "model-a" });
  expect([(await cut.ended).ending, (await waiting).ending]).toEqual(["error", "refused"]);
  expect(a().pid).toBe(pid);
  await served("model-b");
  expect(isAlive(pid!), "it sleeps").toBe(true);
});

test("a sleeping and an awake engine are both found again [C3]", async () => {
  const pids = [a().pid, b().pid];
  await restartAgent();
  expect(await slot()).toMatchObject({ state: "active", active: "model-b" });
  await served("model-b", "model-a");
  expect([a().pid, b().pid]).toEqual(pids);
});

test.each([
  ["stopping, while the old engine falls asleep", () => a().heading === "asleep", {}],
  ["starting, while the new engine wakes", () => b().heading === "awake", { state: "active", active: "model-b" }],
])("%s: no engine is restarted, never two are awake, and both models are served [B2]", async (_, isThere, found) => {
  await ask("model-a");
  const pids = [a().pid, b().pid];
  const waiting = ask("model-b");
  await until("the moment", isThere);
  await restartAgent();
  await waiting;
  expect(await slot()).toMatchObject(found);
  expect(await awakeOf(a(), b())).toBeLessThanOrEqual(1);
  await served("model-b", "model-a");
  expect([a().pid, b().pid]).toEqual(pids);
});

const [empty, activeB] = [{ state: "empty" }, { state: "active", active: "model-b" }];

/** Each case begins with model-a awake. Requests that wait for model-b are refused when maintenance begins. */
test.each([
  ["stopping, in maintenance", () => a().heading === "asleep", undefined, empty],
  ["starting, in maintenance", () => b().heading === "awake", undefined, activeB],
  ["active, in maintenance", () => b().heading === "awake", "active", activeB],
  ["empty, in maintenance", () => a().heading === "asleep", "empty", empty],
])("%s: maintenance continues, and no engine is restarted", async (_, isThere, awaited, found) => {
  await ask("model-a");
  const pids = [a().pid, b().pid];
  const waiting = ask("model-b");
  await until("the moment", isThere);
  await maintenance(true);
  expect(await waiting).toMatchObject({ status: 503, error: { code: "maintenance" } });
  if (awaited) await until(awaited, async () => (await slot()).state === awaited);
  await restartAgent("maintenance");
  expect(await slot()).toMatchObject(found);
  expect(await ask("model-b")).toMatchObject({ status: 503, error: { code: "maintenance" } });
  await maintenance(false);
  await linked("live");
  await served("model-b", "model-a");
  expect([a().pid, b().pid]).toEqual(pids);
});

test("empty: both sleeping engines are found again, and each sleeps until a request for its model", async () => {
  const pids = [a().pid, b().pid];
  const waiting = ask("model-b");
  await until("model-a to fall asleep", () => a().heading === "asleep");
  await maintenance(true);
  expect(await waiting).toMatchObject({ status: 503, error: { code: "maintenance" } });
  await until("the slot to be empty", async () => (await slot()).state === "empty");
  await maintenance(false);
  await restartAgent();
  expect(await slot()).toMatchObject({ ...empty, sleepers: ["model-b", "model-a"] });
  expect(await awakeOf(a(), b())).toBe(0);
  await served("model-b", "model-a");
  expect([a().pid, b().pid]).toEqual(pids);
});

test("starting cold: the engine that comes up is found again", async () => {
  process.kill(b().pid!, "SIGKILL");
  await until("the engine to be gone", () => b().pid === undefined);
  const waiting = ask("model-b");
  await until("the engine to start", () => b().pid !== undefined);
  const { pid } = b();
  await restartAgent();
  expect(await waiting).toMatchObject({ ending: "refused" });
  await served("model-b");
  expect(b().pid).toBe(pid);
});

test("failed: the failed engine's remains are removed, and the backoff is forgotten", async () => {
  const { pid } = b();
  process.kill(pid!, "SIGKILL");
  await until("the engine to be restarted, as after a first failure", () => ![pid, undefined].includes(b().pid));
  process.kill(b().pid!, "SIGKILL");
  await until("the slot to have failed", async () => (await slot()).state === "failed");
  await restartAgent();
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
});

/** Both begin with model-d asleep. */
const probes: [string, () => Promise<void>][] = [
  [
    "that has started",
    async () => {
      writeFileSync(faultFile, "hang:0*1");
      process.kill(d().pid!, "SIGKILL");
      await until("it to be gone", () => d().pid === undefined);
    },
  ],
  ["that was woken", () => d().setFaults("hang:0*1")],
];

test.each(probes)("the probe of an engine %s: the next agent proves it and takes it over", async (_, prepare) => {
  await served("model-d", "model-c");
  await prepare();
  const waiting = ask("model-d");
  await held("starting", "probe");
  rmSync(faultFile, { force: true });
  const pids = [c().pid, d().pid];
  await restartAgent();
  expect(await waiting).toMatchObject({ ending: "refused" });
  expect(await gpuSlot()).toMatchObject({ state: "active", active: "model-d" });
  expect(await awakeOf(c(), d())).toBe(1);
  await served("model-d", "model-c");
  expect([c().pid, d().pid]).toEqual(pids);
});

test.each(["stopping", "starting"] as const)(
  "%s, while memory is awaited: no engine wakes before the memory is free, even under the next agent",
  async (state) => {
    const { waiting } = await memoryAwaited(state);
    const pids = [c().pid, d().pid];
    await restartAgent();
    expect(await waiting).toMatchObject({ ending: "refused" });
    expect(await gpuSlot()).toMatchObject({ state: "empty" });
    const again = ask("model-d");
    await held("starting", "memory");
    expect(await awakeOf(c(), d())).toBe(0);
    await holdsMemory(0);
    expect(await again).toMatchObject({ ending: "whole" });
    expect(await awakeOf(c(), d())).toBe(1);
    await served("model-c");
    expect([c().pid, d().pid]).toEqual(pids);
  },
);

test("an engine that dies while its memory is awaited is removed, and requests for the other engine are served", async () => {
  const { waiting } = await memoryAwaited("stopping");
  await killed(c().pid!);
  await holdsMemory(0);
  expect(await waiting).toMatchObject({ ending: "whole" });
  await until("the engine to be cleared away", () => c().pid === undefined);
  await served("model-c");
});

test("a sleeping engine that dies while memory for its wake is awaited is started for the same request", async () => {
  const { waiting } = await memoryAwaited("starting");
  const { pid } = d();
  await killed(pid!);
  await holdsMemory(0);
  expect(await waiting).toMatchObject({ ending: "whole" });
  expect([d().pid === pid, await awakeOf(c(), d())]).toEqual([false, 1]);
});

test("after all these tests each whole answer is recorded once as its client saw it, and nothing else costs [A1]", async () => {
  const recorded = async () => {
    const records = (await dumpUsage(cluster)).filter(({ credits }) => credits > 0n);
    return records.map(({ requestId, completionTokens }) => `${requestId} ${completionTokens}`).toSorted();
  };
  const whole = seen.filter(({ ending }) => ending === "whole");
  const owed = whole.map(({ id, usage }) => `${id} ${usage!.completion_tokens}`).toSorted();
  await until("the last record", async () => (await recorded()).length >= owed.length);
  expect(await recorded()).toEqual(owed);
});
