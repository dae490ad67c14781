/**
 * Runs a whole Weiche for tests and load: real processes on free ports with a temporary data directory. It has one router
 * with its embedded database, any number of agents and the engines of the agents' files. Tests can kill and restart each
 * part.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { prepareDatabase } from "@weiche/router/test/db/prepared-database.ts";
import type { Client } from "./api-client.ts";
import { runProgram, weiche } from "./commands.ts";

const root = join(import.meta.dirname, "../..");
const anyPort = "127.0.0.1:0";

/** Makes the C library return memory as in the units of router and agent. */
const unitMemory = environmentLine("MALLOC_MMAP_THRESHOLD_");

function environmentLine(name: string): Record<string, string> {
  const unit = readFileSync(join(root, "deploy/systemd/weiche-router.service"), "utf8");
  return { [name]: new RegExp(`^Environment=${name}=(.*)$`, "m").exec(unit)![1]! };
}

export interface ClusterOptions {
  /** The content of `catalogue.yaml`. */
  readonly catalogue: unknown;
  /** The content of each `agent.yaml` by node name. The cluster adds `node`. */
  readonly agents: Readonly<Record<string, object>>;
  /** Further keys of `router.yaml`. */
  readonly router?: object;
  /** Further variables of the programs' environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Called with the router's data directory before any program starts. May return further keys of `router.yaml`. */
  readonly prepare?: (dataDir: string) => void | Promise<object | void>;
  /** Folders with other versions of Weiche for these programs. Defaults to this checkout. */
  readonly code?: { readonly router?: string; readonly agents?: string };
}

/** A node in the output of `weiche nodes`. */
interface NodeShown {
  readonly name: string;
  readonly state: string;
  readonly slots: readonly {
    readonly name: string;
    readonly state: string;
    readonly active?: string;
    readonly running: number;
    readonly troubles: readonly { readonly model: string; readonly kind: string }[];
  }[];
}

export class Cluster implements AsyncDisposable {
  readonly directory = reachableDirectory("weiche-cluster-");
  readonly agents = new Map<string, RunningProgram>();
  router!: RunningProgram;
  readonly #options: ClusterOptions;

  private constructor(options: ClusterOptions) {
    this.#options = options;
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(options);
    writeFileSync(join(cluster.directory, "catalogue.yaml"), stringify(options.catalogue));
    const stops = { shutdownSeconds: 10, shutdownAcceptSeconds: 0 };
    const defaults = { catalogue: "catalogue.yaml", limits: { perIpPerSecond: 0 }, ...stops };
    const dataDir = join(cluster.directory, "data");
    mkdirSync(dataDir);
    // A router of another version migrates its own database.
    if (options.code?.router === undefined) await prepareDatabase(join(dataDir, "router"));
    const router = { ...defaults, ...options.router, ...(await options.prepare?.(dataDir)) };
    writeFileSync(join(cluster.directory, "router.yaml"), stringify(router), { mode: 0o600 });
    try {
      await cluster.startRouter();
      for (const name of Object.keys(options.agents)) await cluster.startAgent(name);
      await cluster.linked();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get baseUrl(): string {
    return `http://${this.router.listen["api"]}/v1`;
  }

  /** Starts the router. A restart uses the same ports. */
  async startRouter(): Promise<void> {
    const before = (this.router as RunningProgram | undefined)?.listen;
    const main = join(this.#options.code?.router ?? root, "router/src/main.ts");
    const env = routerEnvironment(join(this.directory, "data"), before);
    const config = { WEICHE_CONFIG: join(this.directory, "router.yaml") };
    this.router = await RunningProgram.start(main, [], { ...this.#options.environment, ...env, ...config });
  }

  /** Starts an agent. Keys of `more` override those of its first file. */
  async startAgent(name: string, more: object = {}): Promise<void> {
    const routers = [this.router.listen["nodes"]];
    const config = { node: name, routers, shutdownSeconds: 10, ...this.#options.agents[name], ...more };
    const main = join(this.#options.code?.agents ?? root, "node-agent/src/main.ts");
    this.agents.set(name, await startAgent(join(this.directory, name), config, this.#options.environment, main));
  }

  /** Resolves when the router reaches every node. `weiche` may run the command against another router. */
  async linked(weiche = (...args: string[]) => this.weiche(...args)): Promise<void> {
    await until("every node to be live", async () => {
      const nodes = (await weiche("nodes")) as NodeShown[];
      return nodes.filter(({ state }) => state === "live").length >= this.agents.size;
    });
  }

  async nodes(): Promise<readonly NodeShown[]> {
    return (await this.weiche("nodes")) as NodeShown[];
  }

  /** Runs the command `weiche` against this cluster's router. */
  weiche(...args: string[]): Promise<unknown> {
    const { router } = this.#options.code ?? {};
    const dataDir = join(this.directory, "data");
    return router === undefined
      ? weiche(dataDir, args)
      : runProgram(join(router, "router/bin/weiche.js"), dataDir, args);
  }

  /** Runs the command `weiche-agent` at one node. */
  weicheAgent(node: string, ...args: string[]): Promise<unknown> {
    return runProgram("node-agent/bin/weiche-agent.js", join(this.directory, node), args);
  }

  /** Creates an account with an Owner and one key. */
  async account(name = "Test", packageName = "Business Plus"): Promise<Account> {
    const owner = ["--name", name, "--owner-email", `${name.toLowerCase()}@example.com`];
    const made = await this.weiche("account", "create", ...owner, "--package", packageName, "--yes");
    const { id: accountId, ownerUserId: userId } = made as { id: string; ownerUserId: string };
    const { key: apiKey } = (await this.weiche("key", "create", "--user", userId, "--name", "test")) as { key: string };
    return { baseUrl: this.baseUrl, accountId, userId, apiKey };
  }

  /** Ends all processes, including engines, in any state. */
  async [Symbol.asyncDispose](): Promise<void> {
    const engines = [...this.agents.keys()].flatMap((name) => [...enginePids(join(this.directory, name)).values()]);
    await Promise.all([...this.agents.values()].map((agent) => agent.stop()));
    await (this.router as RunningProgram | undefined)?.stop();
    for (const pid of engines.filter(isAlive)) process.kill(-pid, "SIGKILL");
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** An account, and a client with its key. */
export interface Account extends Client {
  readonly accountId: string;
  readonly userId: string;
}

/** Returns the variables for a router's data directory and listeners. Each uses its address of `before` or a free port. */
export function routerEnvironment(dataDir: string, before?: RunningProgram["listen"]): Record<string, string> {
  const listen = ["api", "portal", "console", "nodes", "data", "ops"].map((name) => [
    `WEICHE_${name.toUpperCase()}_LISTEN`,
    before?.[name] ?? anyPort,
  ]);
  return { WEICHE_DATA_DIR: dataDir, ...Object.fromEntries(listen) };
}

/** Writes this `agent.yaml` beside the data directory and starts an agent with it. */
export async function startAgent(
  dataDir: string,
  config: object,
  environment: Readonly<Record<string, string>> = {},
  main = "node-agent/src/main.ts",
): Promise<RunningProgram> {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(`${dataDir}.yaml`, stringify(config), { mode: 0o600 });
  return await RunningProgram.start(main, [], {
    ...environment,
    WEICHE_DATA_DIR: dataDir,
    WEICHE_AGENT_CONFIG: `${dataDir}.yaml`,
    WEICHE_AGENT_OPS_LISTEN: anyPort,
  });
}

/** A router or an agent as a child process. */
export class RunningProgram {
  readonly listen: Readonly<Record<string, string>>;
  readonly #child: ChildProcess;
  readonly #lines: string[];

  private constructor(child: ChildProcess, listen: Readonly<Record<string, string>>, lines: string[]) {
    this.#child = child;
    this.listen = listen;
    this.#lines = lines;
  }

  /** Starts a file of this checkout or an absolute path. Resolves when it logs its listeners, rejects if it ends before. */
  static async start(file: string, args: readonly string[], env: Record<string, string>): Promise<RunningProgram> {
    const child = spawn(process.execPath, [resolve(root, file), ...args], {
      env: { ...process.env, ...unitMemory, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const lines: string[] = [];
    const listening = Promise.withResolvers<Record<string, string>>();
    for (const stream of [child.stdout!, child.stderr!]) {
      createInterface(stream).on("line", (line) => {
        lines.push(line);
        if (!line.startsWith("{")) return;
        const { listen } = JSON.parse(line) as { listen?: Record<string, string> };
        if (listen) listening.resolve(listen);
      });
    }
    child.once("exit", (code, signal) =>
      listening.reject(new Error(`${file} ended (${signal ?? code}):\n${lines.join("\n")}`)),
    );
    return new RunningProgram(child, await listening.promise, lines);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** The lines printed so far. */
  get output(): readonly string[] {
    return this.#lines;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves with the exit code or the signal when the process ends. */
  async exited(): Promise<number | NodeJS.Signals> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
    return this.#child.exitCode ?? this.#child.signalCode!;
  }

  async stop(): Promise<number | NodeJS.Signals> {
    this.kill("SIGTERM");
    return await this.exited();
  }
}

/** Waits for a condition and throws after `boundMs`. The bound detects a hang and measures no speed. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  boundMs = 30_000,
): Promise<void> {
  const deadlineMs = performance.now() + boundMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`waited ${boundMs} ms for ${what}`);
    await sleep(25);
  }
}

/** Makes a temporary directory that the database's user can enter if the test runs as root. */
export function reachableDirectory(prefix: string): string {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  chmodSync(directory, 0o711);
  return directory;
}

/** Kills a process, and resolves when it no longer runs. */
export async function killed(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await until("the process to be dead", () => !isAlive(pid));
}

/** Returns whether a process runs. A zombie does not count. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** The handle that an agent writes for an engine it has started. */
export interface EngineHandle {
  readonly pid: number;
  readonly endpoint: { readonly origin: string };
  /** The state that the agent is bringing the engine into. */
  readonly heading?: "asleep" | "awake";
}

/** Returns the engines that an agent has started, by `<slot>-<model>`. */
export function engineHandles(dataDir: string): ReadonlyMap<string, EngineHandle> {
  const directory = join(dataDir, "agent/engines");
  const files = existsSync(directory) ? readdirSync(directory).filter((file) => file.endsWith(".json")) : [];
  const handles = files.flatMap((file): [string, EngineHandle][] => {
    try {
      const handle = JSON.parse(readFileSync(join(directory, file), "utf8")) as EngineHandle;
      return [[file.slice(0, -".json".length), handle]];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return []; // The agent has removed the file meanwhile.
      throw error;
    }
  });
  return new Map(handles);
}

export function enginePids(dataDir: string): ReadonlyMap<string, number> {
  return new Map([...engineHandles(dataDir)].map(([name, { pid }]) => [name, pid]));
}
