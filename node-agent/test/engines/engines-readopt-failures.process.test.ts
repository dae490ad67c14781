import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { EngineSpec } from "../../src/engines/engine.ts";
import { procTable } from "../../src/engines/launchers/process-table.ts";
import {
  fallibleProcTable,
  faultEngine,
  isAlive,
  kill,
  modelA,
  simulatedNvidiaSmi,
  startsIn,
  until,
  type Host,
  type HostOptions,
} from "./engines-on-host.ts";
import { never, pidLeftBy, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();

const noFile = new Error("EMFILE: too many open files");

/** Opens an agent with this engine. */
function open(engine: EngineSpec, more: Partial<HostOptions> = {}): Host {
  return state.open({ engines: [engine], ...more });
}

const pidAfterAgent = (engine: EngineSpec) => pidLeftBy(open(engine));

describe("while the host has no free file descriptors", () => {
  test("no unseen engine is stopped, and it is adopted later", async () => {
    const pid = await pidAfterAgent(faultEngine(modelA));
    const processes = Object.assign(fallibleProcTable(), { groupsWith: () => Promise.resolve(new Map()) });
    const { engines, told } = open(faultEngine(modelA), { processes });
    processes.outage = noFile;
    await expect(engines.readopt()).rejects.toThrow("EMFILE");
    expect(await isAlive(pid)).toBe(true);
    processes.outage = undefined;
    expect((await engines.readopt())?.model).toBe(modelA);
    expect(told.map(([event]) => event)).toEqual(["engineReady"]);
  });

  test("an adopted engine does not count as gone, and its exit is noticed later", async () => {
    const pid = await pidAfterAgent(faultEngine(modelA));
    const processes = fallibleProcTable();
    const { engines } = open(faultEngine(modelA), { processes });
    const exits: unknown[] = [];
    engines.onExit((model) => exits.push(model));
    await engines.readopt();
    processes.outage = noFile;
    await until("it was looked for", () => processes.failures > 1);
    expect([exits, await isAlive(pid)]).toEqual([[], true]);
    processes.outage = undefined;
    kill(pid, "SIGKILL");
    await until("its exit is reported", () => exits.length > 0);
  });
});

test("an engine is adopted even if its memory cannot be measured", async () => {
  const pid = await pidAfterAgent(faultEngine(modelA));
  const { path: nvidiaSmi } = await simulatedNvidiaSmi(state.directory);
  const processes = { ...procTable, group: () => Promise.reject(noFile) };
  const { engines } = open(faultEngine(modelA), { processes, gpus: [0], nvidiaSmi });
  expect((await engines.readopt())?.model).toBe(modelA);
  expect(await isAlive(pid)).toBe(true);
});

test("an engine that exits while its memory is measured is not adopted", async () => {
  const pid = await pidAfterAgent(faultEngine(modelA));
  const [nvidiaSmi, began, goOn] = ["nvidia-smi", "began", "go-on"].map((name) => join(state.directory, name));
  const wait = `touch ${began}; while [ ! -e ${goOn} ]; do sleep 0.05; done`;
  await writeFile(nvidiaSmi!, `#!/bin/sh\n${wait}\necho "0, GPU-0, 80000, 1000, 79000, 3, 41, 75.2"\n`);
  await chmod(nvidiaSmi!, 0o755);
  let seenGone = false;
  const startOf = async (one: number) => {
    const started = await procTable.startOf(one);
    seenGone ||= one === pid && started === undefined;
    return started;
  };
  const processes = { ...procTable, startOf };
  const { engines, told } = open(faultEngine(modelA), { processes, gpus: [0], nvidiaSmi: nvidiaSmi! });
  const readopted = engines.readopt();
  await until("its memory is measured", () =>
    readFile(began!).then(
      () => true,
      () => false,
    ),
  );
  kill(pid, "SIGKILL");
  await until("its exit is seen", () => seenGone);
  await writeFile(goOn!, "");
  expect(await readopted).toBeUndefined();
  expect(told).toContainEqual(["engineSurprised", "a", modelA, "probe", expect.stringContaining("gone")]);
});

describe("processes that an engine started in other sessions", () => {
  const helpers = () => startsIn(join(state.directory, "helpers"));

  function withHelper(mark: string): EngineSpec {
    const engine = faultEngine(modelA);
    if (engine.launcher.kind !== "process") throw new Error("the engine with faults is a process");
    const script = `export WEICHE_ENGINE="${mark}"; setsid sh -c 'echo $$ >> "$0"; exec sleep 300' "$0" & exec "$@"`;
    const command = ["sh", "-c", script, join(state.directory, "helpers"), ...engine.launcher.command];
    return { ...engine, launcher: { ...engine.launcher, command } };
  }

  test.each([
    ["stay", "$WEICHE_ENGINE", (handle: object) => handle],
    [
      "stay with an engine that has no nonce",
      "${WEICHE_ENGINE%#*}",
      (handle: object) => ({ ...handle, nonce: undefined }),
    ],
  ])("%s while their engine is adopted", async (_, mark, stored) => {
    const engine = withHelper(mark);
    const pid = await pidAfterAgent(engine);
    const [helper] = await helpers();
    const { engines, handles } = open(engine);
    await handles.write(stored((await handles.read())[0]!) as never);
    expect((await engines.readopt())?.model).toBe(modelA);
    expect(await Promise.all([pid, helper!].map(isAlive))).toEqual([true, true]);
    expect(await handles.read()).toMatchObject([{ pid }]);
  });

  test("are stopped if they are of an earlier start, and the handle of the present engine stays", async () => {
    const engine = withHelper("$WEICHE_ENGINE");
    const before = open(engine);
    await before.engines.activate(modelA, never, quiet);
    before.close();
    const [earlier] = await before.handles.read();
    kill(-earlier!.pid!, "SIGKILL");
    await before.handles.remove(earlier!.slot, modelA);
    const pid = await pidAfterAgent(engine);
    const { engines, handles } = open(engine);
    const [old, present] = await helpers();
    expect(await isAlive(old!)).toBe(true);
    expect((await engines.readopt())?.model).toBe(modelA);
    expect(await Promise.all([old!, present!, pid].map(isAlive))).toEqual([false, true, true]);
    expect(await handles.read()).toMatchObject([{ pid }]);
  });
});
