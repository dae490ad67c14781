import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FoundEngine } from "../../src/engines/engine.ts";
import {
  ask,
  endpointPid,
  faultEngine,
  isAlive,
  kill,
  modelA,
  modelB,
  slot,
  startsIn,
  until,
  type Host,
} from "./engines-on-host.ts";
import { never, pidLeftBy, quiet, statePerTest } from "./engines-per-test.ts";

type Awake = Extract<FoundEngine, { readonly endpoint: unknown }>;

const state = statePerTest();
const open = state.openWith;
const pidAfter = (...steps: ((host: Host) => Promise<unknown>)[]) =>
  pidLeftBy(open(faultEngine(modelA, [], { sleepLevel: 1 })), ...steps);

test("after kill -9 of the agent its engine is adopted with the same pid and without a start [C3]", async () => {
  const starts = join(state.directory, "starts");
  const owner = spawn(
    process.execPath,
    [join(import.meta.dirname, "../fixtures/engine-owner.ts"), state.directory, starts],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  await once(owner.stdout, "data");
  owner.kill("SIGKILL");
  await once(owner, "exit");
  const [pid] = await startsIn(starts);
  expect(await isAlive(pid!)).toBe(true);

  const host = open(faultEngine(modelA, ["--starts", starts]));
  const found = await host.engines.readopt();
  expect(found?.model).toBe(modelA);
  expect(await ask((found as Awake).endpoint, "GET /health")).toEqual({});
  expect(await endpointPid(host, modelA)).toBe(pid);
  expect(await startsIn(starts)).toEqual([pid]);
  await host.engines.retire(modelA, quiet);
  expect(await isAlive(pid!)).toBe(false);
});

test("the exit of an adopted engine is noticed, although it is not a child of the agent", async () => {
  const pid = await pidAfter();
  const { engines } = open(faultEngine(modelA, [], { sleepLevel: 1 }));
  const exits: unknown[] = [];
  engines.onExit((model) => exits.push(model));
  await engines.readopt();
  kill(pid, "SIGKILL");
  await until("its exit is reported", () => exits.length > 0);
  expect(exits).toEqual([modelA]);
});

test("a sleeping engine is found asleep and wakes without a start", async () => {
  const pid = await pidAfter((host) => host.engines.retire(modelA, quiet));
  const { engines, handles } = open(faultEngine(modelA, [], { sleepLevel: 1 }));
  expect(await engines.readopt()).toBeUndefined();
  expect(engines.sleepers()).toEqual([{ model: modelA }]);
  await engines.activate(modelA, never, quiet);
  expect((await handles.read())[0]!.pid).toBe(pid);
});

describe("an engine whose agent was killed while it", () => {
  const sleeper = faultEngine(modelA, [], { sleepLevel: 1 });
  const told = (heading: "asleep" | "awake") => async (host: Host) => {
    const [handle] = await host.handles.read();
    await host.handles.write({ ...handle!, asleep: false, heading });
  };
  const asleep = async (host: Host) => {
    await ask((await host.handles.read())[0]!.endpoint, "POST /sleep");
  };

  test.each([
    ["was about to fall asleep", [told("asleep")]],
    ["had just fallen asleep", [asleep, told("asleep")]],
  ])("%s sleeps, and wakes without a start", async (_, steps) => {
    const pid = await pidAfter(...steps);
    const { engines, handles } = open(sleeper);
    expect(await engines.readopt()).toBeUndefined();
    await until("it sleeps", () => engines.sleepers().length === 1);
    const [handle] = await handles.read();
    expect([handle, await ask(handle!.endpoint, "GET /is_sleeping")]).toMatchObject([
      { pid, asleep: true },
      { is_sleeping: true },
    ]);
    expect(handle).not.toHaveProperty("heading");
    await engines.activate(modelA, never, quiet);
    expect((await handles.read())[0]!.pid).toBe(pid);
  });

  test.each([
    ["was being woken", [asleep, told("awake")]],
    ["had just been woken", [told("awake")]],
    ["fell asleep without a written handle", [asleep]],
  ])("%s is woken and adopted", async (_, steps) => {
    const pid = await pidAfter(...steps);
    const { engines, handles } = open(sleeper);
    expect((await engines.readopt())?.model).toBe(modelA);
    const [handle] = await handles.read();
    expect([handle, await ask(handle!.endpoint, "GET /is_sleeping")]).toMatchObject([
      { pid, asleep: false },
      { is_sleeping: false },
    ]);
    expect(handle).not.toHaveProperty("heading");
  });

  test("was starting it, so that it does not listen yet, is awaited and adopted", async () => {
    const before = open(sleeper);
    const handle = await before.launchers.process.start(sleeper, "a" as never);
    await before.handles.write(handle);
    before.close();
    const { engines, handles } = open(sleeper);
    expect((await engines.readopt())?.model).toBe(modelA);
    expect((await handles.read())[0]!.pid).toBe(handle.pid);
  });

  test("was about to fall asleep and does not, is stopped", async () => {
    const stays = faultEngine(modelA, ["--stay-awake"], { sleepLevel: 1 });
    const before = open(stays);
    await before.engines.activate(modelA, never, quiet);
    await told("asleep")(before);
    before.close();
    const pid = await endpointPid(before, modelA);
    const { engines, handles } = open(stays);
    expect(await engines.readopt()).toBeUndefined();
    await until("it is gone", async () => !(await isAlive(pid)) && (await handles.read()).length === 0);
  });

  test("was about to fall asleep does not count as the awake one", async () => {
    await pidAfter(told("asleep"));
    const host = open(sleeper, faultEngine(modelB));
    await host.handles.write(await host.launchers.process.start(faultEngine(modelB), "a" as never));
    expect((await host.engines.readopt())?.model).toBe(modelB);
    await until("the other sleeps", () => host.engines.sleepers().length === 1);
  });
});

describe("an engine that still loads when its agent is killed", () => {
  /** Leaves an engine behind that still loads, like a killed agent. */
  async function loading(...flags: string[]): Promise<{ readonly host: Host; readonly pid: number }> {
    const spec = faultEngine(modelA, ["--starts", join(state.directory, "starts"), ...flags]);
    const before = open(spec);
    const handle = await before.launchers.process.start(spec, slot);
    await before.handles.write({ ...handle, loadingSinceMs: Date.now() });
    before.close();
    return { host: open(spec), pid: handle.pid! };
  }

  test("has its start time on disk until it is ready", async () => {
    const host = open(faultEngine(modelA, ["--start-ms", "300"]));
    const activation = host.engines.activate(modelA, never, quiet);
    await until("its handle is there", async () => (await host.handles.read()).length > 0);
    expect((await host.handles.read())[0]).toHaveProperty("loadingSinceMs");
    await activation;
    expect((await host.handles.read())[0]).not.toHaveProperty("loadingSinceMs");
  });

  test("is adopted at once, and may load longer than an engine that should be ready: same pid, no start [C3]", async () => {
    const { host, pid } = await loading("--start-ms", "3500");
    const found = await host.engines.readopt();
    expect(found).toEqual({ model: modelA, loadingForMs: expect.any(Number) });
    const phases: string[] = [];
    const endpoint = await host.engines.activate(modelA, never, (phase) => phases.push(phase));
    expect(await ask(endpoint, "GET /health")).toEqual({});
    expect(await startsIn(join(state.directory, "starts"))).toEqual([pid]);
    expect([phases.at(-1), host.told.at(-1)]).toEqual([
      "probe",
      ["engineReady", "a", modelA, "adopted", expect.any(Number)],
    ]);
    expect((await host.handles.read())[0]).not.toHaveProperty("loadingSinceMs");
  });

  test("is stopped when its start is given up", async () => {
    const { host, pid } = await loading("--never-ready");
    await host.engines.readopt();
    const givenUp = new AbortController();
    const activation = host.engines.activate(modelA, givenUp.signal, quiet);
    givenUp.abort(new Error("too late"));
    await expect(activation).rejects.toThrow("too late");
    expect([await isAlive(pid), await host.handles.read()]).toEqual([false, []]);
  });

  test("counts as a failed start if it exits", async () => {
    const { host, pid } = await loading("--never-ready");
    await host.engines.readopt();
    const activation = host.engines.activate(modelA, never, quiet);
    kill(pid, "SIGKILL");
    await expect(activation).rejects.toThrow("exit status unknown: it was started by an earlier agent");
    expect(await host.handles.read()).toEqual([]);
  });
});
