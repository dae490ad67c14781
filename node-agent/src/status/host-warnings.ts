/** Compares an agent.yaml with the host. A missing part is a warning, an impossible one a mistake. */
import { resolve } from "node:path";
import type { Finding } from "@weiche/shared/files/config-file.ts";
import { isLoopback, parseListen } from "@weiche/shared/http/listen.ts";
import type { RawAgent, RawEngine } from "../config/config-schema.ts";
import { nameOf } from "../config/engine-models.ts";
import { commandWarnings, modelPaths } from "../config/engine-command-rules.ts";
import type { GpuReading } from "../host/gpu.ts";

export interface HostFacts {
  exists(path: string): boolean;
  /** Undefined if the host measures no GPUs. */
  readonly gpus: readonly Pick<GpuReading, "index" | "memoryTotalBytes">[] | undefined;
}

/** Keys that only some launchers use. */
const ownKeys = {
  process: ["command", "directory", "env"],
  systemd: ["unit", "env"],
  external: ["url"],
} as const;

/** Finds models that are too large for the memory of their slot's GPUs. */
export function* hostMistakes(config: RawAgent, { gpus = [] }: HostFacts): Iterable<Finding> {
  for (const [index, slot] of config.slots.entries()) {
    const totals = slot.gpus.map((gpu) => gpus.find((one) => one.index === gpu)?.memoryTotalBytes ?? Infinity);
    const totalBytes = totals.length === 0 ? Infinity : totals.reduce((sum, bytes) => sum + bytes);
    for (const [at, { model, memoryBytes = 0 }] of slot.engines.entries()) {
      if (memoryBytes <= totalBytes) continue;
      const message = `model "${model}" never fits: memoryBytes is ${memoryBytes}, but the slot's GPUs have ${totalBytes}`;
      yield [["slots", index, "engines", at, "memoryBytes"], message];
    }
  }
}

export function* hostWarnings(config: RawAgent, baseDir: string, host: HostFacts): Iterable<Finding> {
  const isRemote = (router: string) => !isLoopback(parseListen(router, "routers").host);
  const remote = config.tls ? -1 : (config.routers ?? []).findIndex(isRemote);
  if (remote >= 0)
    yield [["routers", remote], "a router beyond loopback accepts only nodes with certificates: set tls"];
  for (const [index, slot] of config.slots.entries()) {
    for (const [at, gpu] of slot.gpus.entries()) {
      const known = host.gpus?.map((one) => one.index);
      if (!known?.includes(gpu)) yield [["slots", index, "gpus", at], missingGpu(gpu, known)];
    }
    for (const [at, engine] of slot.engines.entries()) {
      for (const [path, message] of ofEngine(engine, baseDir, host)) {
        yield [["slots", index, "engines", at, ...path], `model "${nameOf(engine)}": ${message}`];
      }
    }
  }
  yield* crowdedGpus(config.slots, host.gpus ?? []);
}

/** Finds GPUs that are too small for their slots, each of which has one awake engine. */
function* crowdedGpus(slots: RawAgent["slots"], gpus: NonNullable<HostFacts["gpus"]>): Iterable<Finding> {
  for (const { index: gpu, memoryTotalBytes } of gpus) {
    let sum = 0;
    for (const [index, slot] of slots.entries()) {
      const at = slot.gpus.indexOf(gpu);
      if (at < 0) continue;
      sum += Math.max(...slot.engines.map(({ memoryBytes = 0 }) => memoryBytes)) / slot.gpus.length;
      if (memoryTotalBytes === undefined || sum <= memoryTotalBytes) continue;
      yield [
        ["slots", index, "gpus", at],
        `the slots of GPU ${gpu} need ${sum} bytes (memoryBytes), but it has ${memoryTotalBytes}`,
      ];
      break;
    }
  }
}

function missingGpu(gpu: number, known: readonly number[] | undefined): string {
  if (!known) return `GPU ${gpu}: nvidia-smi shows no GPUs on this host; the number is only a label here`;
  return `GPU ${gpu} does not exist on this host, which has ${known.join(", ")}`;
}

function* ofEngine(engine: RawEngine, baseDir: string, host: HostFacts): Iterable<Finding> {
  const { launcher } = engine;
  const own: readonly string[] = ownKeys[launcher];
  const foreign = Object.values(ownKeys)
    .flat()
    .filter((key) => !own.includes(key));
  for (const key of new Set(foreign)) {
    if (engine[key] !== undefined) yield [[key], `launcher ${launcher} ignores "${key}"`];
  }
  yield* commandWarnings(engine);
  if (launcher !== "process") return;
  const directory = resolve(baseDir, engine.directory ?? ".");
  if (!host.exists(directory)) yield [["directory"], `the directory ${engine.directory} does not exist`];
  const program = engine.command![0]!;
  if (program.includes("/") && !host.exists(resolve(directory, program)))
    yield [["command"], `the program ${program} does not exist`];
  for (const path of modelPaths(engine)) {
    if (!host.exists(resolve(directory, path))) yield [["command"], `the model ${path} does not exist`];
  }
}
