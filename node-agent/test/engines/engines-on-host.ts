/** Real engine processes for tests: the engine with faults, its lifecycle, and an agent's parts around one slot. */
import { chmod, mkdtemp, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toldEvents } from "@weiche/shared/testing/told-events.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { DialectLifecycle } from "../../src/engines/dialect-lifecycle.ts";
import { createEngineLogs } from "../../src/engines/log/engine-log.ts";
import type { EngineEndpoint, EngineSpec } from "../../src/engines/engine.ts";
import { createHandleStore } from "../../src/engines/handle-store.ts";
import { createExternalLauncher } from "../../src/engines/launchers/external.ts";
import { createLoopbackPorts } from "../../src/engines/launchers/loopback-ports.ts";
import { ProcessLauncher } from "../../src/engines/launchers/process.ts";
import { procTable, type ProcessTable } from "../../src/engines/launchers/process-table.ts";
import { createSystemdLauncher, runCommand, type RunCommand } from "../../src/engines/launchers/systemd.ts";
import { createSlotEngines } from "../../src/slots/node-engines.ts";
import { createGpuReader } from "../../src/host/gpu.ts";

export const slot = asId<SlotName>("a");
export const modelA = asId<ModelId>("model-a");
export const modelB = asId<ModelId>("model-b");

const program = join(import.meta.dirname, "../fixtures", "fault-engine.mjs");

/** Returns a spec of the engine with faults. */
export function faultEngine(model: ModelId, flags: readonly string[] = [], more: Partial<EngineSpec> = {}): EngineSpec {
  const place = flags.includes("--socket") ? [] : ["--port", "{port}"];
  return {
    model,
    dialect: "vllm",
    launcher: {
      kind: "process",
      command: ["node", program, "--model", model, ...place, ...flags],
      env: {},
      directory: import.meta.dirname,
    },
    maxConcurrent: 4,
    ...more,
  };
}

export async function ask(endpoint: EngineEndpoint, call: string, signal?: AbortSignal): Promise<unknown> {
  const [method, path] = call.split(" ");
  return new Promise((resolve, reject) => {
    const { origin, socketPath } = endpoint;
    const sent = request(`${origin}${path}`, { method, socketPath, signal, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${call} answered ${response.statusCode}`));
      });
    });
    sent.on("error", (error) => reject(signal?.aborted ? (signal.reason as Error) : error)).end();
  });
}

const faultLifecycle: DialectLifecycle = {
  async readiness(endpoint, model, signal, onLoaded) {
    await ask(endpoint, "GET /health", signal);
    const models = (await ask(endpoint, "GET /v1/models", signal)) as { data: { id: string }[] };
    if (models.data[0]?.id !== model) throw new Error("serves another model");
    onLoaded?.();
    await ask(endpoint, "POST /v1/completions", signal);
    return {};
  },
  async sleep(endpoint, level, signal) {
    await ask(endpoint, `POST /sleep?level=${level}&mode=wait`, signal);
    const { is_sleeping } = (await ask(endpoint, "GET /is_sleeping", signal)) as { is_sleeping: boolean };
    if (!is_sleeping) throw new Error("it says that it is awake");
  },
  async isSleeping(endpoint, signal) {
    return ((await ask(endpoint, "GET /is_sleeping", signal)) as { is_sleeping: boolean }).is_sleeping;
  },
  async wake(endpoint, _level, signal) {
    await ask(endpoint, "POST /wake_up", signal);
  },
};

export interface HostOptions {
  readonly engines: readonly EngineSpec[];
  readonly gpus?: readonly number[];
  readonly nvidiaSmi?: string;
  readonly memoryReturnShare?: number;
  readonly runCommand?: RunCommand;
  readonly environment?: NodeJS.ProcessEnv;
  readonly processes?: ProcessTable;
}

/** Opens the parts of an agent that own the engines of one slot, on the real clock, with short time limits. */
export function openHost(stateDir: string, options: HostOptions) {
  const { told, events } = toldEvents<never>();
  const clock = systemClock;
  const logs = createEngineLogs({ directory: join(stateDir, "logs"), clock, events });
  const shared = { stateDir, clock, ports: createLoopbackPorts(), processes: options.processes ?? procTable };
  const process_ = new ProcessLauncher({
    ...{ ...shared, logs, nodePath: process.execPath },
    environment: options.environment ?? process.env,
    stopTimes: { secondSignalAfterMs: 300, killAfterMs: 300, goneAfterMs: 5_000 },
  });
  const launchers = {
    process: process_,
    systemd: createSystemdLauncher({ ...shared, runCommand: options.runCommand ?? runCommand }),
    external: createExternalLauncher(),
  };
  const handles = createHandleStore(join(stateDir, "engines"), events);
  const { engines, memory } = createSlotEngines(
    {
      name: slot,
      gpus: options.gpus ?? [],
      engines: options.engines,
      memory: {
        roomMsMax: 2_000,
        makeRoomAfterMs: 500,
        returnMsMax: 2_000,
        returnShareMin: options.memoryReturnShare ?? 0.75,
      },
    },
    {
      host: {
        launchers,
        dialects: { vllm: faultLifecycle, "llama-server": faultLifecycle, openai: faultLifecycle },
        handles,
        clock,
        limits: { probeMsMax: 5_000, warmMsMax: 2_000, sleepMsMax: 3_000, wakeMsMax: 3_000 },
      },
      gpuReader: createGpuReader({ clock, program: options.nvidiaSmi ?? join(stateDir, "no-nvidia-smi") }),
      events,
      specs: options.engines,
    },
  );
  const close = () => {
    engines[Symbol.dispose]();
    logs[Symbol.dispose]();
  };
  return { engines, memory, launchers, handles, told, close };
}

export type Host = ReturnType<typeof openHost>;

/** Creates a temporary state directory. Disposing it stops all engines that were started in it. */
export async function temporaryState(): Promise<AsyncDisposable & { readonly directory: string }> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "weiche-engines-")));
  return {
    directory,
    async [Symbol.asyncDispose]() {
      for (const group of (await procTable.groupsWith(`WEICHE_ENGINE=${directory}/`)).keys()) kill(-group, "SIGKILL");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

export async function isAlive(pid: number): Promise<boolean> {
  return (await procTable.startOf(pid)) !== undefined;
}

export function endpointPid(host: Host, model: ModelId): Promise<number> {
  return host.handles.read().then((handles) => handles.find((handle) => handle.model === model)!.pid!);
}

export async function startsIn(file: string): Promise<number[]> {
  return (await readFile(file, "utf8").catch(() => "")).split("\n").filter(Boolean).map(Number);
}

/** Returns the host's processes, unless an `outage` is set, and counts the failed calls. */
export function fallibleProcTable() {
  const fallible = { outage: undefined as Error | undefined, failures: 0 };
  const check = () => {
    if (!fallible.outage) return;
    fallible.failures++;
    throw fallible.outage;
  };
  const table: ProcessTable = {
    startOf: async (pid) => (check(), procTable.startOf(pid)),
    group: async (pgid) => (check(), procTable.group(pgid)),
    groupsWith: async (prefix) => (check(), procTable.groupsWith(prefix)),
  };
  return Object.assign(fallible, table);
}

/** Awaits a condition for at most ten seconds. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + 10_000; performance.now() < endMs;) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`not within 10 s: ${what}`);
}

/** Creates a program that answers like nvidia-smi, from two files that the test writes. */
export async function simulatedNvidiaSmi(directory: string) {
  const path = join(directory, "nvidia-smi");
  const script = `#!/bin/sh\ncase "$1" in\n--query-gpu*) cat "${directory}/gpus" ;;\n*) cat "${directory}/apps" ;;\nesac\n`;
  await writeFile(path, script);
  await chmod(path, 0o755);
  const totalMebibytes = 80_000;
  const replace = async (file: string, text: string) => {
    await writeFile(`${directory}/${file}.new`, text);
    await rename(`${directory}/${file}.new`, `${directory}/${file}`);
  };
  const set = async (usedMebibytes: number, apps: readonly (readonly [pid: number, mebibytes: number])[] = []) => {
    const free = totalMebibytes - usedMebibytes;
    await replace("apps", apps.map(([pid, used]) => `GPU-0, ${pid}, ${used}\n`).join(""));
    await replace("gpus", `0, GPU-0, ${totalMebibytes}, ${usedMebibytes}, ${free}, 3, 41, 75.20\n`);
  };
  await set(0);
  return { path, set };
}
