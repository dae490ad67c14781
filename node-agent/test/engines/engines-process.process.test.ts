import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import type { LauncherExitReport } from "../../src/engines/engine.ts";
import { createLoopbackPorts } from "../../src/engines/launchers/loopback-ports.ts";
import { createProcTable, createPsTable, procTable, psTable } from "../../src/engines/launchers/process-table.ts";
import {
  ask,
  fallibleProcTable,
  faultEngine,
  isAlive,
  kill,
  modelA,
  openHost,
  slot,
  until,
  type Host,
} from "./engines-on-host.ts";
import { statePerTest } from "./engines-per-test.ts";

const state = statePerTest();
let host: Host;

beforeEach(() => {
  host = state.open({ engines: [], environment: { ...process.env, HF_TOKEN: "secret", TZ: "UTC" } });
});

const start = (...flags: string[]) => host.launchers.process.start(faultEngine(modelA, flags), slot);

async function serves(handle: Awaited<ReturnType<typeof start>>): Promise<void> {
  await until("the engine serves", () =>
    ask(handle.endpoint, "GET /health").then(
      () => true,
      () => false,
    ),
  );
}

describe("a process engine", () => {
  test("leads its own process group, answers on its port and is gone after stop", async () => {
    const handle = await start();
    await serves(handle);
    expect(await procTable.group(handle.pid!)).toEqual([handle.pid]);
    await host.launchers.process.stop(handle);
    expect(await isAlive(handle.pid!)).toBe(false);
    await host.launchers.process.stop(handle);
  });

  test("is reached by a Unix socket if its command contains one", async () => {
    const handle = await start("--socket", "{socket}");
    await serves(handle);
    expect(handle.endpoint.socketPath).toBe(join(state.directory, "sockets", "a-model-a.sock"));
    await host.launchers.process.stop(handle);
  });

  test("is refused if its socket's path exceeds the kernel's limit", async () => {
    const deep = join(state.directory, "x".repeat(80));
    await mkdir(deep);
    const other = openHost(deep, { engines: [] });
    await expect(other.launchers.process.start(faultEngine(modelA, ["--socket", "{socket}"]), slot)).rejects.toThrow(
      /at most 107/,
    );
    other.close();
  });

  test("gets a second SIGTERM if it does not end after the first", async () => {
    const handle = await start("--terms", "2");
    await serves(handle);
    await host.launchers.process.stop(handle);
    expect((await host.launchers.process.lastLines(handle)).filter((line) => line === "SIGTERM")).toHaveLength(2);
  });

  test("is killed with its whole group when it and its child ignore SIGTERM", async () => {
    const handle = await start("--terms", "0", "--child");
    await until("the child runs", async () =>
      (await host.launchers.process.lastLines(handle)).some((line) => line.startsWith("child ")),
    );
    const group = await host.launchers.process.processes(handle);
    expect(group).toHaveLength(2);
    await host.launchers.process.stop(handle);
    expect(await Promise.all(group.map(isAlive))).toEqual([false, false]);
  });

  test("that died leaves a child behind, which stop ends", async () => {
    const handle = await start("--child");
    await until("the child runs", async () => (await host.launchers.process.processes(handle)).length === 2);
    const child = (await host.launchers.process.processes(handle)).find((pid) => pid !== handle.pid)!;
    await until("the child ignores SIGTERM", async () =>
      (await host.launchers.process.lastLines(handle)).some((line) => line.startsWith("child ")),
    );
    kill(handle.pid!, "SIGKILL");
    await until("the leader is gone", async () => !(await isAlive(handle.pid!)));
    expect(await isAlive(child)).toBe(true);
    await host.launchers.process.stop(handle);
    expect(await isAlive(child)).toBe(false);
  });

  test("has no dead processes in its group, even if nothing reaps them", needs("ps"), async () => {
    // The shell becomes a program that never reaps its child.
    const command = ["sh", "-c", "sleep 0 & exec sleep 60", "{port}"];
    const launcher = { kind: "process", command, env: {}, directory: "/" } as const;
    const handle = await host.launchers.process.start({ ...faultEngine(modelA), launcher }, slot);
    const states = async () => (await promisify(execFile)("ps", ["-o", "stat=", "-s", String(handle.pid)])).stdout;
    await until("the child is dead and not reaped", async () => /^Z/m.test(await states()));
    expect(await host.launchers.process.processes(handle)).toEqual([handle.pid]);
    await host.launchers.process.stop(handle);
  });

  test("that exits is reported with its exit code and last 50 lines", async () => {
    const handle = await start("--exit", "7");
    const report = await new Promise<LauncherExitReport>((resolve) => host.launchers.process.onExit(handle, resolve));
    expect(report.reason).toBe("exit code 7");
    expect(report.output).toBe(join(state.directory, "logs", "a-model-a.log"));
    expect(report.lastLines).toEqual(Array.from({ length: 50 }, (_, index) => `line ${index + 11}`));
  });

  test("gets its own environment and a part of the agent's, without credentials", async () => {
    const spec = faultEngine(modelA);
    const env = { OWN: "yes" };
    const handle = await host.launchers.process.start({ ...spec, launcher: { ...spec.launcher, env } as never }, slot);
    await serves(handle);
    const seen = (await ask(handle.endpoint, "GET /environment")) as Record<string, string>;
    expect(seen).toMatchObject({ OWN: "yes", TZ: "UTC", CUDA_DEVICE_ORDER: "PCI_BUS_ID" });
    expect(seen["PATH"]!.startsWith(join(process.execPath, ".."))).toBe(true);
    expect(Object.keys(seen)).not.toContain("HF_TOKEN");
    await host.launchers.process.stop(handle);
  });

  test("that cannot be started is refused with the reason", async () => {
    const launcher = { kind: "process", command: ["no-such-program", "{port}"], env: {}, directory: "/" } as const;
    const start = (more: object) =>
      host.launchers.process.start({ ...faultEngine(modelA), launcher: { ...launcher, ...more } }, slot);
    await expect(start({})).rejects.toThrow("spawn no-such-program ENOENT");
    await expect(start({ directory: "/no/such/place" })).rejects.toThrow("its directory /no/such/place does not exist");
    await expect(start({ command: ["node"] })).rejects.toThrow("names neither {port} nor {socket}");
  });

  test("whose start time cannot be read is killed, because it could not be found again", async () => {
    const processes = fallibleProcTable();
    processes.outage = new Error("EMFILE: too many open files");
    const other = state.open({ engines: [], processes });
    const starts = join(state.directory, "starts");
    await expect(other.launchers.process.start(faultEngine(modelA, ["--starts", starts]), slot)).rejects.toThrow(
      "EMFILE",
    );
    await until("it is gone", async () => (await state.engineGroups()).length === 0);
  });

  test("is not touched when its pid belongs to another process", async () => {
    const handle = await start();
    const other = { ...handle, startTicks: handle.startTicks! - 1, nonce: "of an earlier start" };
    expect(await host.launchers.process.recover(other, faultEngine(modelA))).toBe(false);
    await host.launchers.process.stop(other);
    expect(await isAlive(handle.pid!)).toBe(true);
    await host.launchers.process.stop(handle);
  });
});

test("two engines never get the same port, or a port that is in use", async () => {
  const ports = createLoopbackPorts();
  const taken = await Promise.all(Array.from({ length: 50 }, () => ports.take()));
  expect(new Set(taken).size).toBe(50);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  expect(taken).not.toContain((server.address() as { port: number }).port);
  server.close();
});

describe("the state in /proc of a process that", () => {
  const stat = (state: string) => `7 (a b) ${state} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0`;
  const folder = () => join(state.directory, "proc", "7");

  test.each([
    ["lives", { stat: stat("S") }, 4711, [7]],
    ["waits to be reaped", { stat: stat("Z") }, undefined, []],
    ["is just going", {}, undefined, []],
  ])("%s", async (_, files, started, group) => {
    await mkdir(folder(), { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder(), name), text);
    const table = createProcTable(join(state.directory, "proc"));
    expect(await table.startOf(7)).toBe(started);
    expect(await table.group(7)).toEqual(group);
  });

  test("an unreadable process table is an error, not an exit", async () => {
    for (const name of ["stat", "environ"]) await mkdir(join(folder(), name), { recursive: true });
    const table = createProcTable(join(state.directory, "proc"));
    await expect(table.startOf(7)).rejects.toThrow("EISDIR");
    await expect(table.group(7)).rejects.toThrow("EISDIR");
    await expect(table.groupsWith("A=")).rejects.toThrow("EISDIR");
    await expect(createPsTable(folder()).startOf(7)).rejects.toThrow("ENOENT");
  });
});

test("ps reports the same facts of a process as /proc, for hosts without it", needs("ps"), async () => {
  const handle = await start();
  await serves(handle);
  expect(await psTable.group(handle.pid!)).toEqual(await procTable.group(handle.pid!));
  expect(await psTable.startOf(handle.pid!)).toBeGreaterThan(1_600_000_000_000);
  expect(await psTable.startOf(handle.pid!)).toBe(await psTable.startOf(handle.pid!));
  await host.launchers.process.stop(handle);
  expect(await psTable.startOf(handle.pid!)).toBeUndefined();
});
