/** Starts programs that listen on a local port as child processes of the bench. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { findProgram } from "../../e2e/real-engines/find-program.ts";
import { pythonPrograms } from "./install.ts";
import type { Program, Upstream } from "./program.ts";

/** The source of a peer's command and version. */
interface Source {
  /** Returns the command without the arguments of `configure`, or undefined if it is not installed. */
  readonly command: () => readonly [string, ...string[]] | undefined;
  readonly version: () => string;
}

/** A program with one process that accepts requests on one port. */
interface Peer extends Source, Pick<Program, "name" | "what"> {
  /** The command that installs the program. */
  readonly install: string;
  /** Returns header lines that its clients must send. */
  readonly headers?: (upstream: Upstream) => string;
  readonly env?: Readonly<Record<string, string>>;
  /** Writes the configuration into the upstream's directory and returns the arguments. */
  readonly configure: (port: number, upstream: Upstream) => readonly string[];
}

export function peer({ name, what, install, command, version, headers, env, configure }: Peer): Program {
  return {
    ...{ name, what },
    missing: () => (command() === undefined ? `not installed (${install})` : undefined),
    async start(upstream) {
      const [program, ...args] = command()!;
      const port = await freePort();
      const all = [...args, ...configure(port, upstream)];
      const child = await startChild(program, all, port, upstream.directory, env);
      return { ...child, version: version(), processes: { proxy: child.pid }, headers: headers?.(upstream) };
    },
  };
}

/** Returns a program of the system or of the Python peers. `versionOption` makes it print its version. */
export function ofSystem(name: string, versionOption: string): Source {
  const find = () =>
    findProgram(name, undefined, { PATH: `${pythonPrograms}:${process.env["PATH"]}:/usr/sbin:/usr/local/sbin` });
  return {
    command() {
      const program = find();
      return program === undefined ? undefined : [program];
    },
    version() {
      const { stdout, stderr } = spawnSync(find()!, [versionOption], { encoding: "utf8" });
      return /\d+(\.\d+)+|\bv\d+\b/.exec(`${stdout}${stderr}`)?.[0] ?? "unknown";
    },
  };
}

/** Returns a Node.js script that needs a package of `benchmarks/peers`. `file` is relative to `benchmarks`. */
export function ofPackage(name: string, file: string): Source {
  const manifest = join(import.meta.dirname, "node_modules", name, "package.json");
  return {
    command: () => (existsSync(manifest) ? [process.execPath, benchmarksFile(file)] : undefined),
    version: () => (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version,
  };
}

/** Returns the path of a file in `benchmarks`. */
export function benchmarksFile(file: string): string {
  return join(import.meta.dirname, "..", file);
}

export interface Child extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

const startMsMax = 30_000;
const stopMsMax = 5_000;

/** Starts a program. Resolves when `port` accepts connections, rejects with its output if it ends or never listens. */
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
    cwd: directory,
    env: { ...process.env, ...env },
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
