/**
 * A whole Weiche as real processes on free ports and a temporary data directory: one router with its embedded database,
 * any number of node-agents, engines as the agents' files say. For tests and load; each part can be killed and started
 * again on its own.
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

/** How the C library gives memory back, as the units of router and agent say it. */
const unitMemory = environmentLine("MALLOC_MMAP_THRESHOLD_");

function environmentLine(name: string): Record<string, string> {
  const unit = readFileSync(join(root, "deploy/systemd/weiche-router.service"), "utf8");
  return { [name]: new RegExp(`^Environment=${name}=(.*)$`, "m").exec(unit)![1]! };
}

export interface ClusterOptions {
  /** Contents of `catalogue.yaml`. */
  readonly catalogue: unknown;
  /** Contents of `agent.yaml` by node name; `node` is filled in. */
  readonly agents: Readonly<Record<string, object>>;
  /** More keys of `router.yaml`. */
  readonly router?: object;
  /** More of the programs' environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Called with the router's data directory before anything runs. May give more keys of `router.yaml`. */
  readonly prepare?: (dataDir: string) => void | Promise<object | void>;
  /** Folders with other code of Weiche, where a program is not to be that of this checkout. */
  readonly code?: { readonly router?: string; readonly agents?: string };
}

/** A node as the command `weiche nodes` shows it. */
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
    // A router of other code migrates a database of its own.
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

  /** Starts the router, on the ports it had before if it ran already. */
  async startRouter(): Promise<void> {
    const before = (this.router as RunningProgram | undefined)?.listen;
    const main = join(this.#options.code?.router ?? root, "router/src/main.ts");
    const env = routerEnvironment(join(this.directory, "data"), before);
    const config = { WEICHE_CONFIG: join(this.directory, "router.yaml") };
    this.router = await RunningProgram.start(main, [], { ...this.#options.environment, ...env, ...config });
  }

  /** `more`: keys of its file that win over those it was given at first. */
  async startAgent(name: string, more: object = {}): Promise<void> {
    const routers = [this.router.listen["nodes"]];
    const config = { node: name, routers, shutdownSeconds: 10, ...this.#options.agents[name], ...more };
    const main = join(this.#options.code?.agents ?? root, "node-agent/src/main.ts");
    this.agents.set(name, await startAgent(join(this.directory, name), config, this.#options.environment, main));
  }

  /** Resolves once the router can reach every node. `weiche`: the command against another router. */
  async linked(weiche = (...args: string[]) => this.weiche(...args)): Promise<void> {
    await until("every node to be live", async () => {
      const nodes = (await weiche("nodes")) as NodeShown[];
      return nodes.filter(({ state }) => state === "live").length >= this.agents.size;
    });
  }

  async nodes(): Promise<readonly NodeShown[]> {
    return (await this.weiche("nodes")) as NodeShown[];
  }

  /** The operators' command against this cluster's router. */
  weiche(...args: string[]): Promise<unknown> {
    const { router } = this.#options.code ?? {};
    const dataDir = join(this.directory, "data");
    return router === undefined
      ? weiche(dataDir, args)
      : runProgram(join(router, "router/bin/weiche.js"), dataDir, args);
  }

  /** The command of the engineer at one node. */
  weicheAgent(node: string, ...args: string[]): Promise<unknown> {
    return runProgram("node-agent/bin/weiche-agent.js", join(this.directory, node), args);
  }

  /** An account with an Owner and one key. */
  async account(name = "Test", packageName = "Business Plus"): Promise<Account> {
    const owner = ["--name", name, "--owner-email", `${name.toLowerCase()}@example.com`];
    const made = await this.weiche("account", "create", ...owner, "--package", packageName, "--yes");
    const { id: accountId, ownerUserId: userId } = made as { id: string; ownerUserId: string };
    const { key: apiKey } = (await this.weiche("key", "create", "--user", userId, "--name", "test")) as { key: string };
    return { baseUrl: this.baseUrl, accountId, userId, apiKey };
  }

  /** Ends everything, engines included, whatever state it is in. */
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

/** Where a router keeps its data, and for each of its listeners the address it had `before`, or any free port. */
export function routerEnvironment(dataDir: string, before?: RunningProgram["listen"]): Record<string, string> {
  const listen = ["api", "portal", "console", "nodes", "data", "ops"].map((name) => [
    `WEICHE_${name.toUpperCase()}_LISTEN`,
    before?.[name] ?? anyPort,
  ]);
  return { WEICHE_DATA_DIR: dataDir, ...Object.fromEntries(listen) };
}

/** Starts an agent with this `agent.yaml`, which is written beside its data directory. */
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

/** One of our programs as a child process. */
export class RunningProgram {
  readonly listen: Readonly<Record<string, string>>;
  readonly #child: ChildProcess;
  readonly #lines: string[];

  private constructor(child: ChildProcess, listen: Readonly<Record<string, string>>, lines: string[]) {
    this.#child = child;
    this.listen = listen;
    this.#lines = lines;
  }

  /** `file`: of this checkout, or absolute. Resolves once it says where it listens; rejects with its output if it ends before. */
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

  /** The lines that it has printed so far. */
  get output(): readonly string[] {
    return this.#lines;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves with the exit code, or the signal, once it is gone. */
  async exited(): Promise<number | NodeJS.Signals> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
    return this.#child.exitCode ?? this.#child.signalCode!;
  }

  async stop(): Promise<number | NodeJS.Signals> {
    this.kill("SIGTERM");
    return await this.exited();
  }
}

/** Awaits a condition with a bound: a promise's deadline, not a speed measurement. */
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

/** A temporary directory that the database's own user can pass, where a test runs as root. */
export function reachableDirectory(prefix: string): string {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  chmodSync(directory, 0o711);
  return directory;
}

/** Whether a process runs; one that is dead and that nobody has reaped does not. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** The handle that an agent wrote for an engine that it started. */
export interface EngineHandle {
  readonly pid: number;
  readonly endpoint: { readonly origin: string };
  /** The state into which the agent is bringing it. */
  readonly heading?: "asleep" | "awake";
}

/** The engines that an agent has started, by `<slot>-<model>`. */
export function engineHandles(dataDir: string): ReadonlyMap<string, EngineHandle> {
  const directory = join(dataDir, "agent/engines");
  const files = existsSync(directory) ? readdirSync(directory).filter((file) => file.endsWith(".json")) : [];
  const handles = files.flatMap((file): [string, EngineHandle][] => {
    try {
      const handle = JSON.parse(readFileSync(join(directory, file), "utf8")) as EngineHandle;
      return [[file.slice(0, -".json".length), handle]];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return []; // The agent has removed it meanwhile.
      throw error;
    }
  });
  return new Map(handles);
}

export function enginePids(dataDir: string): ReadonlyMap<string, number> {
  return new Map([...engineHandles(dataDir)].map(([name, { pid }]) => [name, pid]));
}
