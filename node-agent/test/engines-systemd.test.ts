import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { EngineSpec } from "../src/engines/engine.ts";
import type { RunCommand } from "../src/engines/launchers/systemd.ts";
import {
  ask,
  faultEngine,
  isAlive,
  kill,
  modelA,
  openHost,
  temporaryState,
  until,
  type Host,
} from "./engines-on-host.ts";

let state: Awaited<ReturnType<typeof temporaryState>>;
const hosts: Host[] = [];

beforeEach(async () => {
  state = await temporaryState();
});
afterEach(async () => {
  for (const host of hosts.splice(0)) {
    await host.engines.stopAll();
    host.close();
  }
  await state[Symbol.asyncDispose]();
});

const never = new AbortController().signal;
const quiet = () => {};

const systemd: RunCommand = async (program, args) => {
  const script = join(import.meta.dirname, "fixtures", "simulated-systemd.mjs");
  return (await promisify(execFile)(process.execPath, [script, state.directory, program, ...args])).stdout;
};

function unitEngine(flags = "", more: Partial<EngineSpec> = {}): EngineSpec {
  const env = { FLAGS: flags, ODD: 'a "b" $c `d` \\e' };
  return { ...faultEngine(modelA), launcher: { kind: "systemd", unit: "weiche-engine@.service", env }, ...more };
}

function open(...engines: EngineSpec[]): Host {
  const host = openHost(state.directory, { engines, runCommand: systemd });
  hosts.push(host);
  return host;
}

test("a unit's instance gets port, model and environment by its file, and is gone after retire", async () => {
  const { engines, handles } = open(unitEngine());
  const endpoint = await engines.activate(modelA, never, quiet);
  expect(await ask(endpoint, "GET /environment")).toMatchObject({
    WEICHE_MODEL: modelA,
    WEICHE_PORT: new URL(endpoint.origin).port,
    ODD: 'a "b" $c `d` \\e',
  });
  const file = join(state.directory, "units", "a-model-a.env");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, "utf8")).toContain(`WEICHE_MODEL="model-a"\n`);
  const [handle] = await handles.read();
  expect(handle).toMatchObject({ unit: "weiche-engine@a-model-a.service" });
  await engines.retire(modelA, quiet);
  expect(await isAlive(handle!.pid!)).toBe(false);
  expect(await handles.read()).toEqual([]);
});

test("a unit that runs on is adopted by the next agent, and its exit is noticed", async () => {
  const first = open(unitEngine());
  await first.engines.activate(modelA, never, quiet);
  const { pid } = (await first.handles.read())[0]!;
  first.close();
  const { engines } = open(unitEngine());
  const exits: string[] = [];
  engines.onExit((_, report) => exits.push(report.reason, report.lastLines.at(-1)!));
  expect(await engines.readopt()).toMatchObject({ model: modelA });
  kill(pid!, "SIGKILL");
  await until("its exit is reported", () => exits.length > 0);
  expect(exits).toEqual(["unit failed, result signal, status 9", "serving model-a"]);
});

test("a unit with another configuration is stopped, not adopted", async () => {
  const first = open(unitEngine());
  await first.engines.activate(modelA, never, quiet);
  const { pid } = (await first.handles.read())[0]!;
  first.close();
  expect(await open(unitEngine("--start-ms 1")).engines.readopt()).toBeUndefined();
  expect(await isAlive(pid!)).toBe(false);
});

test("a unit that fails its start is refused with what its journal says", async () => {
  const { engines } = open(unitEngine("--exit 4"));
  await expect(engines.activate(modelA, never, quiet)).rejects.toMatchObject({
    message: expect.stringContaining("failed"),
    lastLines: expect.arrayContaining(["line 60"]),
  });
});

test("a unit that wants a second signal gets it", async () => {
  const { engines } = open(unitEngine("--terms 2"));
  await engines.activate(modelA, never, quiet);
  await engines.retire(modelA, quiet);
  const log = await systemd("journalctl", ["--unit", "weiche-engine@a-model-a.service"]);
  expect(log.match(/SIGTERM/g)).toHaveLength(2);
});

test("a unit that is no template is refused", async () => {
  const launcher = { kind: "systemd", unit: "engine.service", env: {} } as const;
  const { engines } = open(unitEngine("", { launcher }));
  await expect(engines.activate(modelA, never, quiet)).rejects.toThrow("is not a template");
});
