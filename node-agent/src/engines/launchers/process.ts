/**
 * Engines as processes of the agent's host. Each leads its own process group and session and writes to a file, so that
 * it outlives the agent. The next agent finds it by pid, start time and hash of its command.
 *
 *   start ── spawned, handle ──▶ living ──▶ exits by itself: onExit; `stop` ends the rest of its group
 *                                  │
 *                                  └─ stop: SIGTERM, 2 s, SIGTERM (llama-server wants two), 10 s, SIGKILL, to the group
 *
 * Child processes in other sessions and groups are stopped too. All inherit the variable WEICHE_ENGINE, the engine's
 * mark, which is unique per start.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, rm, stat } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { assert } from "@weiche/shared/assert.ts";
import { every, sleep, type Clock } from "@weiche/shared/time/clock.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { EngineHandle, EngineSpec, Launcher, LauncherExitReport } from "../engine.ts";
import type { EngineLogs } from "../log/engine-log.ts";
import { engineName } from "../engine-name.ts";
import { checkSocketPath, commandHash, endpointOf, engineEnvironment, fillCommand } from "./engine-command.ts";
import type { LoopbackPorts } from "./loopback-ports.ts";
import type { ProcessTable } from "./process-table.ts";

interface ProcessLauncherOptions {
  readonly stateDir: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly nodePath: string;
  readonly clock: Clock;
  readonly logs: EngineLogs;
  readonly ports: LoopbackPorts;
  readonly processes: ProcessTable;
  readonly stopTimes?: Readonly<typeof defaultStopTimes>;
}

/** `goneAfterMs`: wait after SIGKILL, which a process in uninterruptible sleep can outlast. */
const defaultStopTimes = { secondSignalAfterMs: 2_000, killAfterMs: 10_000, goneAfterMs: 20_000 };
const adoptedPollMs = 250;
const stopPollMsMin = 10;
const stopPollMsMax = 200;
/** The nonce, which follows the model in an engine's mark. */
const nonceAtEnd = /#([0-9a-f-]{36})$/;

export class ProcessLauncher implements Launcher {
  readonly #options: ProcessLauncherOptions;
  /** Group leaders known to be engines of this agent, by pid. Child processes have their exit. */
  readonly #known = new Map<number, Promise<string> | "adopted">();

  constructor(options: ProcessLauncherOptions) {
    this.#options = options;
  }

  async start(spec: EngineSpec, slot: SlotName): Promise<EngineHandle> {
    assert(spec.launcher.kind === "process", "the process launcher starts processes");
    const { command, env, directory } = spec.launcher;
    const wants = (place: string) => command.some((part) => part.includes(place));
    if (!wants("{port}") && !wants("{socket}")) throw new Error("its command names neither {port} nor {socket}");
    const socketPath = wants("{socket}") ? await this.#freeSocket(slot, spec.model) : undefined;
    const port = wants("{port}") ? await this.#options.ports.take() : undefined;
    const nonce = randomUUID();
    try {
      const inherited = engineEnvironment(this.#options.environment, this.#options.nodePath, env);
      const marked = { ...inherited, WEICHE_ENGINE: `${this.#mark(slot)}${spec.model}#${nonce}` };
      const filled = fillCommand(command, { port, socketPath });
      const pid = await this.#spawn(engineName(slot, spec.model), filled, directory, marked);
      const startTicks = await this.#startOfNew(pid);
      const endpoint = endpointOf({ port, socketPath });
      return {
        ...{ slot, model: spec.model, launcher: "process", endpoint, pid, nonce, asleep: false },
        ...{ startTicks, commandHash: commandHash(spec.launcher) },
      };
    } catch (error) {
      if (port !== undefined) this.#options.ports.release(port);
      throw error;
    }
  }

  async recover(handle: EngineHandle, spec: EngineSpec): Promise<boolean> {
    if (handle.pid === undefined || handle.commandHash !== commandHash(spec.launcher)) return false;
    const started = await this.#options.processes.startOf(handle.pid);
    if (started === undefined || started !== handle.startTicks) return false;
    this.#known.set(handle.pid, this.#known.get(handle.pid) ?? "adopted");
    await this.#options.logs.adopt(engineName(handle.slot, handle.model), handle.pid);
    return true;
  }

  serve(handle: EngineHandle): Promise<void> {
    return this.#options.logs.serve(engineName(handle.slot, handle.model));
  }

  async stop(handle: EngineHandle): Promise<void> {
    if (handle.pid === undefined) return;
    const isOurs = await this.#isOurs(handle.pid, handle);
    const { secondSignalAfterMs, killAfterMs, goneAfterMs } = this.#options.stopTimes ?? defaultStopTimes;
    const left =
      (await this.#signal(handle, "SIGTERM", secondSignalAfterMs)) &&
      (await this.#signal(handle, "SIGTERM", killAfterMs)) &&
      (await this.#signal(handle, "SIGKILL", goneAfterMs));
    if (left) throw new Error(`process group ${left.join(", ")} is still there after SIGKILL`);
    if (!isOurs) return;
    this.#known.delete(handle.pid);
    const { origin, socketPath } = handle.endpoint;
    if (socketPath !== undefined) await rm(socketPath, { force: true });
    this.#options.ports.release(Number(new URL(origin).port));
  }

  onExit(handle: EngineHandle, callback: (report: LauncherExitReport) => void): () => void {
    let watching = true;
    const exit = this.#known.get(handle.pid!);
    const report = async (reason: string) => {
      const output = this.#options.logs.fileOf(engineName(handle.slot, handle.model));
      const lastLines = await this.lastLines(handle);
      if (watching) callback({ reason, output, lastLines });
      watching = false;
    };
    if (exit instanceof Promise) {
      void exit.then(report);
      return () => void (watching = false);
    }
    // It is not a child process, so it is polled, and its exit status stays unknown.
    const poll = every(this.#options.clock, adoptedPollMs, async () => {
      const started = await this.#options.processes.startOf(handle.pid!).catch(() => handle.startTicks);
      if (started === handle.startTicks) return;
      poll.cancel();
      await report("gone, exit status unknown: it was started by an earlier agent");
    });
    return () => {
      watching = false;
      poll.cancel();
    };
  }

  lastLines(handle: EngineHandle): Promise<readonly string[]> {
    return this.#options.logs.lastLines(engineName(handle.slot, handle.model)).catch(() => []);
  }

  async processes(handle: EngineHandle): Promise<readonly number[]> {
    const elsewhere = (await this.#markedGroups(handle)).filter((pgid) => pgid !== handle.pid);
    const groups = [handle.pid!, ...elsewhere].map((pgid) => this.#options.processes.group(pgid));
    return (await Promise.all(groups)).flat();
  }

  /** Finds them by their mark, because an agent can die between starting an engine and writing its handle. */
  async running(slot: SlotName): Promise<readonly EngineHandle[]> {
    const groups = await this.#options.processes.groupsWith(`WEICHE_ENGINE=${this.#mark(slot)}`);
    return Promise.all(
      [...groups].map(async ([pid, started]): Promise<EngineHandle> => {
        const startTicks = await this.#options.processes.startOf(pid);
        const endpoint = { origin: "http://127.0.0.1" };
        const nonce = nonceAtEnd.exec(started)?.[1];
        const model = asId<ModelId>(started.replace(nonceAtEnd, ""));
        return { slot, model, launcher: "process", endpoint, pid, startTicks, nonce, asleep: false };
      }),
    );
  }

  async #spawn(name: string, command: readonly string[], directory: string, env: Record<string, string>) {
    if (!(await stat(directory).catch(() => undefined))?.isDirectory()) {
      throw new Error(`its directory ${directory} does not exist`);
    }
    await using log = await this.#options.logs.open(name);
    // Detached, in its own session and group. Output goes to a file, because a pipe would break when the agent ends.
    const child: ChildProcess = spawn(command[0]!, command.slice(1), {
      ...{ cwd: directory, env, detached: true, stdio: ["ignore", log.fd, log.fd] },
    });
    const exited = new Promise<string>((resolve) => {
      child.once("exit", (code, signal) => resolve(signal === null ? exitCode(code!) : `signal ${signal}`));
    });
    await once(child, "spawn");
    child.unref();
    this.#known.set(child.pid!, exited);
    return child.pid!;
  }

  async #freeSocket(slot: SlotName, model: ModelId): Promise<string> {
    const path = checkSocketPath(join(this.#options.stateDir, "sockets", `${engineName(slot, model)}.sock`));
    await mkdir(join(this.#options.stateDir, "sockets"), { recursive: true, mode: 0o700 });
    await rm(path, { force: true });
    return path;
  }

  /** Kills the process if its start time cannot be read, because it could not be found again. */
  async #startOfNew(pid: number): Promise<number | undefined> {
    try {
      return await this.#options.processes.startOf(pid);
    } catch (error) {
      signalGroup(pid, "SIGKILL");
      throw error;
    }
  }

  #mark(slot: SlotName): string {
    return `${this.#options.stateDir}/${slot}/`;
  }

  /**
   * Returns the groups with a process that carries the mark of this start. Returns none if environments cannot be read.
   */
  async #markedGroups({ slot, model, nonce }: EngineHandle): Promise<readonly number[]> {
    const mark = `WEICHE_ENGINE=${this.#mark(slot)}${model}${nonce === undefined ? "" : `#${nonce}`}`;
    const groups = await this.#options.processes.groupsWith(mark);
    return [...groups].flatMap(([pgid, more]) => (more === "" && pgid > 1 ? [pgid] : []));
  }

  /**
   * Returns whether the group is this engine's. A leader with another start time is another process with the same pid.
   * Without a leader, the group is ours if this agent knew the leader, or a process in it carries the mark.
   */
  async #isOurs(pid: number, handle: EngineHandle): Promise<boolean> {
    const started = await this.#options.processes.startOf(pid);
    if (started !== undefined) return started === handle.startTicks;
    return this.#known.has(pid) || (await this.#markedGroups(handle)).includes(pid);
  }

  /** Returns all process groups of the engine that have a living process. */
  async #livingGroups(handle: EngineHandle): Promise<readonly number[]> {
    const pgid = handle.pid!;
    const marked = await this.#markedGroups(handle);
    const isOursToo = !marked.includes(pgid) && (await this.#isOurs(pgid, handle));
    return isOursToo && (await this.#isLeft(pgid, handle)) ? [pgid, ...marked] : marked;
  }

  async #isLeft(pgid: number, handle: EngineHandle): Promise<boolean> {
    const { processes } = this.#options;
    const leader = pgid === handle.pid ? await processes.startOf(pgid) : undefined;
    if (leader !== undefined && leader === handle.startTicks) return true;
    return signalGroup(pgid, 0) && (await processes.group(pgid)).length > 0;
  }

  /**
   * Signals all groups of the engine. Resolves with the groups still alive after `waitMs`, or undefined if all are
   * gone.
   */
  async #signal(handle: EngineHandle, signal: NodeJS.Signals, waitMs: number): Promise<readonly number[] | undefined> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + waitMs;
    let left: readonly number[] = [];
    for (let stepMs = stopPollMsMin; ; stepMs = Math.min(stepMs * 2, stopPollMsMax)) {
      // When all seem gone, it checks again, because they may have forked into new groups meanwhile.
      if (left.length === 0) {
        left = await this.#livingGroups(handle);
        for (const pgid of left) signalGroup(pgid, signal);
      }
      if (left.length === 0) return undefined;
      if (clock.monotonicMs() >= untilMs) return left;
      await sleep(clock, stepMs);
      const isLeft = await Promise.all(left.map((pgid) => this.#isLeft(pgid, handle)));
      left = left.filter((_, index) => isLeft[index]);
    }
  }
}

/** A shell or container reports the signal that ended its program as exit code 128 + signal. */
function exitCode(code: number): string {
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? `exit code ${code}` : `exit code ${code} (signal ${signal})`;
}

/** Returns false if there is no such group. On macOS a group of zombies returns EPERM and counts as existing. */
function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  assert(Number.isInteger(pgid) && pgid > 1, "only an engine's own group gets signals");
  try {
    return process.kill(-pgid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ESRCH" || code === "EPERM") return code === "EPERM";
    throw error;
  }
}
