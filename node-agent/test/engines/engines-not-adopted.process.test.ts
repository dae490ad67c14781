/** Engines and handles of an earlier agent that the next agent does not adopt. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { asId, type SlotName } from "@weiche/shared/ids.ts";
import { stopForgottenEngines } from "../../src/slots/node-engines.ts";
import { endpointPid, faultEngine, isAlive, kill, modelA, modelB, until, type Host } from "./engines-on-host.ts";
import { never, pidLeftBy, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();

const open = state.openWith;
const pidAfter = (...steps: ((host: Host) => Promise<unknown>)[]) =>
  pidLeftBy(open(faultEngine(modelA, [], { sleepLevel: 1 })), ...steps);

test("an engine whose configuration has changed is stopped, not adopted", async () => {
  const pid = await pidAfter();
  const { engines, handles, told } = open(faultEngine(modelA, ["--start-ms", "1"]));
  expect(await engines.readopt()).toBeUndefined();
  expect(await isAlive(pid)).toBe(false);
  expect(await handles.read()).toEqual([]);
  expect(told.map(([event]) => event)).toContain("engineNotAdopted");
});

test("an engine that is no longer configured is stopped, with or without its slot", async () => {
  const pid = await pidAfter();
  expect(await open(faultEngine(modelB)).engines.readopt()).toBeUndefined();
  expect(await isAlive(pid)).toBe(false);

  const other = await pidAfter();
  const { handles, launchers, told } = open();
  const events = { engineNotAdopted: () => told.push(["not adopted"]), engineSurprised: () => {} };
  await (
    await stopForgottenEngines([{ name: asId<SlotName>("a") }], { handles, launchers } as never, events)
  ).gone;
  expect(await isAlive(other)).toBe(true);
  await (
    await stopForgottenEngines([{ name: asId<SlotName>("b") }], { handles, launchers } as never, events)
  ).gone;
  expect(await isAlive(other)).toBe(false);
  expect(told).toEqual([["not adopted"]]);
});

test("a process that got the engine's pid is not touched, and the stale handle is removed", async () => {
  const host = open(faultEngine(modelA));
  await host.engines.activate(modelA, never, quiet);
  const [handle] = await host.handles.read();
  await host.engines.stopAll();
  const stranger = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
  await once(stranger, "spawn");
  await host.handles.write({ ...handle!, pid: stranger.pid! });
  const { engines, handles } = open(faultEngine(modelA));
  expect(await engines.readopt()).toBeUndefined();
  expect(await isAlive(stranger.pid!)).toBe(true);
  expect(await handles.read()).toEqual([]);
  stranger.kill("SIGKILL");
});

test("a handle without a process is removed", async () => {
  const pid = await pidAfter();
  kill(-pid, "SIGKILL");
  await until("it is gone", async () => !(await isAlive(pid)));
  const { engines, handles } = open(faultEngine(modelA, [], { sleepLevel: 1 }));
  expect(await engines.readopt()).toBeUndefined();
  expect(await handles.read()).toEqual([]);
});

test("the remaining processes of a dead engine's group are stopped", async () => {
  const host = open(faultEngine(modelA, ["--child"]));
  await host.engines.activate(modelA, never, quiet);
  const pid = await endpointPid(host, modelA);
  const child = (await host.launchers.process.processes((await host.handles.read())[0]!)).find((one) => one !== pid)!;
  host.close();
  kill(pid, "SIGKILL");
  await until("the leader is gone", async () => !(await isAlive(pid)));
  await open(faultEngine(modelA, ["--child"])).engines.readopt();
  expect(await isAlive(child)).toBe(false);
});

test("an engine whose handle never reached the disk is stopped", async () => {
  const pid = await pidAfter();
  await rm(join(state.directory, "engines"), { recursive: true });
  await open(faultEngine(modelA)).engines.readopt();
  expect(await isAlive(pid)).toBe(false);
});

test("if two engines are awake, none is adopted", async () => {
  const host = open(faultEngine(modelA), faultEngine(modelB));
  const started = [];
  for (const model of [modelA, modelB]) {
    const handle = await host.launchers.process.start(faultEngine(model), "a" as never);
    await host.handles.write(handle);
    started.push(handle.pid!);
  }
  expect(await open(faultEngine(modelA), faultEngine(modelB)).engines.readopt()).toBeUndefined();
  expect(await Promise.all(started.map(isAlive))).toEqual([false, false]);
});

test("files that are not handles are reported and not touched", async () => {
  const directory = join(state.directory, "engines");
  await mkdir(directory);
  const group = { slot: "a", model: "model-a", launcher: "process", endpoint: { origin: "http://127.0.0.1:1" } };
  await writeFile(join(directory, "a-model-a.json"), JSON.stringify({ ...group, pid: -1, asleep: false }));
  await writeFile(join(directory, "notes.txt"), "remember the milk");
  await writeFile(join(directory, "a-model-b.json.tmp"), "{");
  const { engines, told } = open(faultEngine(modelA));
  expect(await engines.readopt()).toBeUndefined();
  expect(new Set(told.map(([event, file]) => `${event} ${String(file)}`))).toEqual(
    new Set(["handleUnreadable a-model-a.json", "handleUnreadable notes.txt"]),
  );
  expect(await readdir(directory)).toHaveLength(3);
});
