/** Programs that listen on a port of this machine, as child processes of the bench. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync, closeSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface Child extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

const startMsMax = 30_000;
const stopMsMax = 5_000;

/** Resolves once `port` takes connections; rejects with what the program said if it ends or never listens. */
export async function startChild(
  command: string,
  args: readonly string[],
  port: number,
  directory: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Child> {
  const log = join(directory, `${port}.log`);
  const output = openSync(log, "w");
  const child = spawn(command, args, {
    ...{ cwd: directory, env: { ...process.env, ...env } },
    stdio: ["ignore", output, output],
  });
  closeSync(output);
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()).once("error", () => resolve()));
  const stop = async () => {
    child.kill();
    const timer = setTimeout(() => child.kill("SIGKILL"), stopMsMax);
    await exited;
    clearTimeout(timer);
  };
  const isGone = () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
  const deadlineMs = performance.now() + startMsMax;
  while (!(await listens(port))) {
    if (isGone() || performance.now() > deadlineMs) {
      await stop();
      throw new Error(`${command} does not listen:\n${readFileSync(log, "utf8").slice(-2_000)}`);
    }
    await sleep(50);
  }
  return { pid: child.pid!, port, [Symbol.asyncDispose]: stop };
}

/** Where a program of the system is; undefined: nowhere. */
export function findProgram(name: string): string | undefined {
  const folders = `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin`.split(":");
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** The first thing like a version that a program says. */
export function versionOf(command: string, ...args: string[]): string {
  const { stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  return /\d+\.\d+(\.\d+)?/.exec(`${stdout}${stderr}`)?.[0] ?? "unknown";
}

/** A package of `benchmarks/peers`. */
export function packageVersion(name: string): string {
  const file = join(import.meta.dirname, "node_modules", name, "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
