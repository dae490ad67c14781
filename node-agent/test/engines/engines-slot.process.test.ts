import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { procTable } from "../../src/engines/launchers/process-table.ts";
import { EngineStartError, type EngineSpec, type SwitchPhase } from "../../src/engines/engine.ts";
import {
  ask,
  endpointPid,
  faultEngine,
  isAlive,
  kill,
  modelA,
  modelB,
  startsIn,
  until,
  type Host,
} from "./engines-on-host.ts";
import { never, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();
let host: Host;

const starts = () => join(state.directory, "starts");
const sleeps = { sleepLevel: 1 } as const;

function open(...engines: EngineSpec[]): Host {
  host = state.open({ engines });
  return host;
}

function toldOf(event: string): unknown[][] {
  return host.told.filter(([name]) => name === event).map(([, ...details]) => details);
}

describe("activate", () => {
  test("starts an engine, waits until it has generated a token and stores it on disk", async () => {
    const { engines, handles } = open(faultEngine(modelA, ["--start-ms", "300"]));
    const phases: SwitchPhase[] = [];
    const endpoint = await engines.activate(modelA, never, (phase) => phases.push(phase));
    expect(await ask(endpoint, "GET /health")).toEqual({});
    expect(phases).toEqual(["start", "probe"]);
    expect(await handles.read()).toMatchObject([{ model: modelA, endpoint, asleep: false }]);
  });

  test("fails at once, with the last lines, if the engine exits early", async () => {
    const { engines, handles } = open(faultEngine(modelA, ["--exit", "1"]));
    const error = await engines.activate(modelA, never, quiet).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EngineStartError);
    expect((error as EngineStartError).message).toBe("exit code 1");
    expect((error as EngineStartError).lastLines).toHaveLength(50);
    expect((error as EngineStartError).lastLines.at(-1)).toBe("line 60");
    expect(await handles.read()).toEqual([]);
  });

  test("of an engine of several models fails while one of them does not answer [B10]", async () => {
    const { engines } = open(faultEngine(modelA, [], { models: [modelA, modelB] }));
    const phases: SwitchPhase[] = [];
    const activation = engines.activate(modelA, AbortSignal.timeout(2_000), (phase) => phases.push(phase));
    await expect(activation, "its engine serves only the first model").rejects.toThrow("timeout");
    expect(phases).toContain("probe");
  });

  test("of an engine that never becomes ready ends with the signal and leaves no process behind", async () => {
    const { engines, handles } = open(faultEngine(modelA, ["--never-ready", "--child", "--terms", "0"]));
    const patience = new AbortController();
    const activation = engines.activate(modelA, patience.signal, quiet);
    await until("engine and child run", async () => {
      const groups = await state.engineGroups();
      return groups.length === 1 && (await procTable.group(groups[0]!)).length === 2;
    });
    patience.abort(new Error("the time is over"));
    await expect(activation).rejects.toThrow("the time is over; its last answer");
    expect(await state.engineGroups()).toEqual([]);
    expect(await handles.read()).toEqual([]);
  });

  test("with an aborted signal starts nothing", async () => {
    const { engines } = open(faultEngine(modelA, ["--starts", starts()]));
    await expect(engines.activate(modelA, AbortSignal.abort(new Error("no")), quiet)).rejects.toThrow("no");
    expect(await startsIn(starts())).toEqual([]);
  });

  test("retires another model's engine first if one is awake", async () => {
    const { engines } = open(faultEngine(modelA), faultEngine(modelB));
    await engines.activate(modelA, never, quiet);
    const pid = await endpointPid(host, modelA);
    await engines.activate(modelB, never, quiet);
    expect(await isAlive(pid)).toBe(false);
    expect(await state.engineGroups()).toHaveLength(1);
  });

  test("of an awake engine probes it, and restarts it if it does not answer", async () => {
    const { engines } = open(faultEngine(modelA, ["--starts", starts()]));
    const endpoint = await engines.activate(modelA, never, quiet);
    expect(await engines.activate(modelA, never, quiet)).toEqual(endpoint);
    expect(await startsIn(starts())).toHaveLength(1);
    // A stopped process hangs: it accepts connections and answers nothing.
    kill(await endpointPid(host, modelA), "SIGSTOP");
    await engines.activate(modelA, never, quiet);
    expect(await startsIn(starts())).toHaveLength(2);
    expect(toldOf("engineSurprised")).toEqual([
      ["a", modelA, "probe", expect.stringContaining("took longer than 2 s")],
    ]);
  });
});

describe("retire", () => {
  test("stops an engine that cannot sleep", async () => {
    const { engines, handles } = open(faultEngine(modelA));
    await engines.activate(modelA, never, quiet);
    await engines.retire(modelA, quiet);
    expect(await state.engineGroups()).toEqual([]);
    expect(await handles.read()).toEqual([]);
    await engines.retire(modelA, quiet);
  });

  test("puts an engine to sleep, which activate wakes without a start", async () => {
    const { engines, handles } = open(faultEngine(modelA, ["--starts", starts()], sleeps));
    const endpoint = await engines.activate(modelA, never, quiet);
    await engines.retire(modelA, quiet);
    expect(await ask(endpoint, "GET /is_sleeping")).toEqual({ is_sleeping: true });
    expect(engines.sleepers()).toEqual([{ model: modelA }]);
    expect(await handles.read()).toMatchObject([{ asleep: true }]);
    const phases: SwitchPhase[] = [];
    expect(await engines.activate(modelA, never, (phase) => phases.push(phase))).toEqual(endpoint);
    expect(phases).toEqual(["start", "probe"]);
    expect(engines.sleepers()).toEqual([]);
    expect(await handles.read()).toMatchObject([{ asleep: false }]);
    expect(await startsIn(starts())).toHaveLength(1);
  });

  test("stops an engine that reports sleep but does not sleep", async () => {
    const { engines } = open(faultEngine(modelA, ["--stay-awake"], sleeps));
    await engines.activate(modelA, never, quiet);
    await engines.retire(modelA, quiet);
    expect(await state.engineGroups()).toEqual([]);
    expect(engines.sleepers()).toEqual([]);
    expect(toldOf("engineSurprised")).toEqual([["a", modelA, "sleep", "it says that it is awake"]]);
  });

  test("for good also stops an engine that could sleep or sleeps", async () => {
    const { engines } = open(faultEngine(modelA, [], sleeps));
    await engines.activate(modelA, never, quiet);
    await engines.retire(modelA, quiet, true);
    expect(await state.engineGroups()).toEqual([]);
    await engines.activate(modelA, never, quiet);
    await engines.retire(modelA, quiet);
    await engines.retire(modelA, quiet, true);
    expect(await state.engineGroups()).toEqual([]);
  });
});

test("an engine that fails to wake is killed and started cold", async () => {
  const { engines } = open(faultEngine(modelA, ["--wake-fails", "--starts", starts()], sleeps));
  await engines.activate(modelA, never, quiet);
  await engines.retire(modelA, quiet);
  await engines.activate(modelA, never, quiet);
  expect(await startsIn(starts())).toHaveLength(2);
  expect(await state.engineGroups()).toHaveLength(1);
  expect(toldOf("engineSurprised")).toEqual([["a", modelA, "wake", "POST /wake_up answered 500"]]);
});

test("the exit of an awake engine is reported at once, without its output, and the rest of its group is stopped", async () => {
  const { engines, handles } = open(faultEngine(modelA, ["--child"]));
  const endpoint = await engines.activate(modelA, never, quiet);
  const exits: unknown[] = [];
  engines.onExit((model, report) => exits.push([model, report]));
  await ask(endpoint, "POST /exit").catch(() => {});
  await until("the exit is reported", () => exits.length === 1);
  const output = join(state.directory, "logs", "a-model-a.log");
  const kept = await readFile(output, "utf8");
  expect(kept).toContain("serving model-a");
  expect(kept).not.toContain("asked to exit");
  expect(exits).toEqual([[modelA, { reason: "exit code 3", output }]]);
  await until("nothing is left", async () => (await state.engineGroups()).length === 0);
  await until("it is forgotten", async () => (await handles.read()).length === 0);
  await engines.activate(modelA, never, quiet);
  expect(exits).toHaveLength(1);
});

test("a sleeping engine that exits starts cold when requested, and does not count as the awake one", async () => {
  const { engines } = open(faultEngine(modelA, ["--starts", starts()], sleeps));
  await engines.activate(modelA, never, quiet);
  engines.onExit(() => expect.unreachable("it was asleep"));
  await engines.retire(modelA, quiet);
  kill(await endpointPid(host, modelA), "SIGKILL");
  await until("it is no longer a sleeper", () => engines.sleepers().length === 0);
  await engines.activate(modelA, never, quiet);
  expect(await startsIn(starts())).toHaveLength(2);
  expect(toldOf("sleeperExited")).toMatchObject([["a", modelA, { reason: "signal SIGKILL" }]]);
});

test("an engine that is being woken is no longer a sleeper on disk", async () => {
  const { engines, handles } = open(faultEngine(modelA, ["--wake-hangs"], sleeps));
  await engines.activate(modelA, never, quiet);
  await engines.retire(modelA, quiet);
  const patience = new AbortController();
  const activation = engines.activate(modelA, patience.signal, quiet).catch((error: unknown) => error);
  await until("its handle says so", async () => (await handles.read())[0]!.asleep === false);
  expect(engines.sleepers()).toEqual([]);
  patience.abort(new Error("enough"));
  expect(await activation).toMatchObject({ message: "enough" });
  expect(await state.engineGroups()).toEqual([]);
});

describe("while the slot still cleans up after another engine", () => {
  /** Makes engine A awake, and lets sleeper B die and leave a child that ends slowly. */
  async function busySlot(): Promise<void> {
    open(faultEngine(modelA, ["--starts", starts()]), faultEngine(modelB, ["--child"], sleeps));
    await host.engines.activate(modelB, never, quiet);
    await host.engines.retire(modelB, quiet);
    const sleeper = await endpointPid(host, modelB);
    await until("its child ignores SIGTERM", async () => (await procTable.group(sleeper)).length === 2);
    await host.engines.activate(modelA, never, quiet);
    kill(sleeper, "SIGKILL");
    await until("the sleeper's exit is noticed", () => toldOf("sleeperExited").length === 1);
  }

  test("an engine that exits before its retirement is not reported", async () => {
    await busySlot();
    host.engines.onExit(() => expect.unreachable("it was already being retired"));
    const pid = await endpointPid(host, modelA);
    const retired = host.engines.retire(modelA, quiet);
    kill(pid, "SIGKILL");
    await retired;
    expect(await state.engineGroups()).toEqual([]);
  });

  test("an engine that exits before its new probe is started, and its clean-up spares the new one", async () => {
    await busySlot();
    const exits: unknown[] = [];
    host.engines.onExit((model) => exits.push(model));
    const pid = await endpointPid(host, modelA);
    const activation = host.engines.activate(modelA, never, quiet);
    kill(pid, "SIGKILL");
    const endpoint = await activation;
    await host.engines.retire(modelB, quiet);
    expect(exits).toEqual([modelA]);
    expect(await ask(endpoint, "GET /health")).toEqual({});
    expect(await host.handles.read()).toMatchObject([{ model: modelA, endpoint }]);
  });
});

test("stopAll ends a start in progress, sleeping engines and the awake one", async () => {
  const { engines, handles } = open(faultEngine(modelA, [], sleeps), faultEngine(modelB, ["--never-ready"]));
  await engines.activate(modelA, never, quiet);
  await engines.retire(modelA, quiet);
  const activation = engines.activate(modelB, never, quiet).catch((error: unknown) => error);
  await until("both run", async () => (await state.engineGroups()).length === 2);
  await engines.stopAll();
  expect(await activation).toMatchObject({ message: expect.stringContaining("all engines") });
  expect(await state.engineGroups()).toEqual([]);
  expect(await handles.read()).toEqual([]);
});

test("an external engine is probed, put to sleep and woken, and never stopped", async () => {
  const starter = state.open({ engines: [] });
  const handle = await starter.launchers.process.start(faultEngine(modelA), "other" as never);
  const launcher = { kind: "external", url: `${handle.endpoint.origin}/` } as const;
  const { engines } = open({ ...faultEngine(modelA, [], sleeps), launcher });
  const endpoint = await engines.activate(modelA, never, quiet);
  await engines.retire(modelA, quiet);
  expect(await ask(endpoint, "GET /is_sleeping")).toEqual({ is_sleeping: true });
  await engines.activate(modelA, never, quiet);
  await engines.stopAll();
  expect(await isAlive(handle.pid!)).toBe(true);
  await starter.launchers.process.stop(handle);
  await expect(engines.activate(modelA, never, quiet)).rejects.toThrow("the engine's answer took longer than 2 s");
});
