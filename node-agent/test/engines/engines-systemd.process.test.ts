import { execFile } from "node:child_process";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import type { EngineSpec } from "../../src/engines/engine.ts";
import type { RunCommand } from "../../src/engines/launchers/systemd.ts";
import { ask, faultEngine, isAlive, kill, modelA, until, type Host } from "./engines-on-host.ts";
import { never, pidLeftBy, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();
afterEach(async () => {
  failing = { verb: "", times: 0 };
  for (const { engines } of state.hosts) await engines.stopAll();
});

/** Which command of systemctl fails from now on, and how often. */
let failing = { verb: "", times: 0 };

const systemd: RunCommand = async (program, args) => {
  if (args.includes(failing.verb) && failing.times-- > 0) throw new Error("Failed to connect to bus");
  const script = join(import.meta.dirname, "../fixtures", "simulated-systemd.mjs");
  return (await promisify(execFile)(process.execPath, [script, state.directory, program, ...args])).stdout;
};

function unitEngine(flags = "", more: Partial<EngineSpec> = {}): EngineSpec {
  const env = { FLAGS: flags, ODD: 'a "b" $c `d` \\e' };
  return { ...faultEngine(modelA), launcher: { kind: "systemd", unit: "weiche-engine@.service", env }, ...more };
}

const units = (file: string) => join(state.directory, "units", file);

function open(...engines: EngineSpec[]): Host {
  return state.open({ engines, runCommand: systemd });
}

test("a unit's instance gets port, model and environment from its file, and is gone after retire", async () => {
  const { engines, handles } = open(unitEngine());
  const endpoint = await engines.activate(modelA, never, quiet);
  expect(await ask(endpoint, "GET /environment")).toMatchObject({
    WEICHE_MODEL: modelA,
    WEICHE_PORT: new URL(endpoint.origin).port,
    ODD: 'a "b" $c `d` \\e',
  });
  const file = units("a-model-a.env");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, "utf8")).toContain(`WEICHE_MODEL="model-a"\n`);
  const [handle] = await handles.read();
  expect(handle).toMatchObject({ unit: "weiche-engine@a-model-a.service" });
  await engines.retire(modelA, quiet);
  expect(await isAlive(handle!.pid!)).toBe(false);
  expect(await handles.read()).toEqual([]);
});

test("a running unit is adopted by the next agent, and its exit is noticed", async () => {
  const pid = await pidLeftBy(open(unitEngine()));
  const { engines } = open(unitEngine());
  const exits: string[] = [];
  engines.onExit((_, report) => exits.push(report.reason, report.output));
  expect(await engines.readopt()).toMatchObject({ model: modelA });
  kill(pid, "SIGKILL");
  await until("its exit is reported", () => exits.length > 0);
  expect(exits).toEqual(["unit failed, result signal, status 9", "journalctl --unit weiche-engine@a-model-a.service"]);
});

test.each([1, 2])(
  "if systemd fails to answer %i times, a unit is adopted afterwards and not stopped",
  async (times) => {
    const pid = await pidLeftBy(open(unitEngine()));
    const { engines, told } = open(unitEngine());
    failing = { verb: "show", times };
    for (let time = 1; time <= times; time++) await expect(engines.readopt()).rejects.toThrow("connect to bus");
    expect(await engines.readopt()).toMatchObject({ model: modelA });
    expect(await isAlive(pid)).toBe(true);
    expect(told.map(([event]) => event)).toEqual(["engineReady"]);
  },
);

test("a unit that must stop and does not makes readopt fail until it is gone", async () => {
  const pid = await pidLeftBy(open(unitEngine()));
  const { engines, handles } = open(unitEngine("--start-ms 1"));
  failing = { verb: "stop", times: 1 };
  await expect(engines.readopt()).rejects.toThrow("connect to bus");
  expect(await handles.read()).toMatchObject([{ pid }]);
  expect(await engines.readopt()).toBeUndefined();
  expect(await isAlive(pid)).toBe(false);
  expect(await handles.read()).toEqual([]);
});

test("a unit with another configuration is stopped, not adopted", async () => {
  const pid = await pidLeftBy(open(unitEngine()));
  expect(await open(unitEngine("--start-ms 1")).engines.readopt()).toBeUndefined();
  expect(await isAlive(pid)).toBe(false);
});

test("a unit whose start fails is refused with its journal's lines", async () => {
  const { engines } = open(unitEngine("--exit 4"));
  await expect(engines.activate(modelA, never, quiet)).rejects.toMatchObject({
    message: expect.stringContaining("failed"),
    lastLines: expect.arrayContaining(["line 60"]),
  });
});

describe("the output of a unit's earlier run is not reported for a unit that", () => {
  test.each([
    ["fails its start", (missing: string) => writeFile(missing, `${process.pid}\n`), ["CUDA out of memory"]],
    [
      "cannot be started",
      () => rename(units("a-model-a.env"), units("x")).then(() => mkdir(units("a-model-a.env"))),
      [],
    ],
  ])("%s", async (_, spoil, said) => {
    const missing = join(state.directory, "missing");
    await writeFile(missing, "");
    const { engines } = open(unitEngine(`--oom-while ${missing}`));
    await engines.activate(modelA, never, quiet);
    await engines.stopAll();
    await spoil(missing);
    await expect(engines.activate(modelA, never, quiet)).rejects.toMatchObject({
      lastLines: said.map((text) => expect.stringContaining(text)),
    });
  });
});

test("a unit that needs a second signal gets it", async () => {
  const { engines } = open(unitEngine("--terms 2"));
  await engines.activate(modelA, never, quiet);
  await engines.retire(modelA, quiet);
  const log = await systemd("journalctl", ["--unit", "weiche-engine@a-model-a.service"]);
  expect(log.match(/SIGTERM/g)).toHaveLength(2);
});

test("a unit that is not a template is refused", async () => {
  const launcher = { kind: "systemd", unit: "engine.service", env: {} } as const;
  const { engines } = open(unitEngine("", { launcher }));
  await expect(engines.activate(modelA, never, quiet)).rejects.toThrow("is not a template");
});
