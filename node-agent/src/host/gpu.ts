/**
 * GPU measurements from nvidia-smi. Unknown values are absent, not 0. A host without nvidia-smi has no measurements.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Clock } from "@weiche/shared/time/clock.ts";

export interface GpuReading {
  readonly index: number;
  readonly uuid: string;
  readonly memoryTotalBytes?: number;
  readonly memoryUsedBytes?: number;
  /** Less than total minus used, because the driver reserves some memory. */
  readonly memoryFreeBytes?: number;
  /** 0 to 1. */
  readonly utilisation?: number;
  readonly temperatureCelsius?: number;
  readonly powerWatts?: number;
  /** Why the GPU runs slower than it could. Empty if it does not. Undefined if it does not report this. */
  readonly slowdowns?: readonly Slowdown[];
}

/**
 * Reasons of NVML (`nvmlClocksEventReasons`) with their bits. Left out are idleness and settings of the operator
 * (application clocks, sync boost, display clocks).
 */
const slowdownBits = {
  sw_power_cap: 0x04n,
  hw_slowdown: 0x08n,
  sw_thermal_slowdown: 0x20n,
  hw_thermal_slowdown: 0x40n,
  hw_power_brake_slowdown: 0x80n,
} as const;
type Slowdown = keyof typeof slowdownBits;
export const slowdowns = Object.keys(slowdownBits) as readonly Slowdown[];

export interface GpuProcess {
  readonly gpuUuid: string;
  readonly pid: number;
  readonly memoryUsedBytes?: number;
}

/** An NVIDIA GPU, as the inventory of the host names it. */
export interface GpuModel {
  readonly index: number;
  readonly name: string;
  readonly driver: string;
  /** The address in the kernel's form, `0000:3b:00.0`. */
  readonly busAddress: string;
  readonly memoryTotalBytes?: number;
}

export type GpuReader = ReturnType<typeof createGpuReader>;

/** The time limit, because nvidia-smi can hang forever when a GPU has fallen off its bus. */
const runMsMax = 5_000;
/** Pauses before the next attempt, on a host without the program and after a failure. */
const missingMs = 60_000;
const brokenMs = 5_000;

const gpuFields = "index,uuid,memory.total,memory.used,memory.free,utilization.gpu,temperature.gpu,power.draw" as const;
/**
 * The field with the reasons of a slowdown since driver 535, and before it. nvidia-smi refuses a query with an unknown
 * field.
 */
const slowdownFields = ["clocks_event_reasons.active", "clocks_throttle_reasons.active"] as const;
const processFields = "gpu_uuid,pid,used_memory" as const;

export function createGpuReader({
  clock,
  program = "nvidia-smi",
}: {
  readonly clock: Clock;
  readonly program?: string;
}) {
  let silentUntilMs = -Infinity;
  let slowdownFieldsLeft: readonly string[] = slowdownFields;

  async function runGpuQuery(): Promise<Rows> {
    const [field] = slowdownFieldsLeft;
    if (field === undefined) return await run(program, `--query-gpu=${gpuFields}`);
    try {
      return await run(program, `--query-gpu=${gpuFields},${field}`);
    } catch (error) {
      if (!isUnknown(field, error)) throw error;
      slowdownFieldsLeft = slowdownFieldsLeft.slice(1);
      return runGpuQuery();
    }
  }

  async function unlessSilent(query: () => Promise<Rows>): Promise<Rows | undefined> {
    if (clock.monotonicMs() < silentUntilMs) return undefined;
    try {
      return await query();
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      silentUntilMs = clock.monotonicMs() + (isMissing ? missingMs : brokenMs);
      return undefined;
    }
  }

  return {
    /** Returns readings not older than `ageMsMax`. Undefined if this host measures no GPUs. */
    readGpus: remembered(clock, async () => (await unlessSilent(runGpuQuery))?.map(toReading)),
    readGpuProcesses: remembered(clock, async () =>
      (await unlessSilent(() => run(program, `--query-compute-apps=${processFields}`)))?.map(toProcess),
    ),
  };
}

/** Reads the permanent facts of NVIDIA GPUs: name, driver, memory, bus address. Rejects if nvidia-smi is missing. */
export async function readGpuModels(): Promise<readonly GpuModel[]> {
  const rows = await run("nvidia-smi", "--query-gpu=index,name,driver_version,pci.bus_id,memory.total");
  return rows.flatMap(([index, name, driver, busId, memory]) => {
    // nvidia-smi writes the domain with eight digits, the kernel with four.
    const [, busAddress] = /^(?:0000)?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])$/i.exec(busId ?? "") ?? [];
    if (busAddress === undefined) return [];
    const of = { index: Number(index), name: name!, driver: `nvidia ${driver}`, busAddress: busAddress.toLowerCase() };
    return [{ ...of, memoryTotalBytes: mebibytes(memory) }];
  });
}

/** The cells of nvidia-smi's CSV output. */
type Rows = readonly (readonly string[])[];

async function run(program: string, what: string): Promise<Rows> {
  const args = [what, "--format=csv,noheader,nounits"];
  const { stdout } = await promisify(execFile)(program, args, { timeout: runMsMax, killSignal: "SIGKILL" });
  const lines = stdout.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => line.split(",").map((cell) => cell.trim()));
}

function isUnknown(field: string, error: unknown): boolean {
  const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
  return `${stdout}${stderr}`.includes(`"${field}" is not a valid field`);
}

/**
 * Runs `read` once at a time for all concurrent callers. Its result is reused for later callers that accept its age.
 */
function remembered<T>(clock: Clock, read: () => Promise<readonly T[] | undefined>) {
  let running: ReturnType<typeof read> | undefined;
  let last: { readonly value: Awaited<ReturnType<typeof read>>; readonly atMs: number } | undefined;
  return (ageMsMax = 0): ReturnType<typeof read> => {
    if (last && clock.monotonicMs() - last.atMs < ageMsMax) return Promise.resolve(last.value);
    running ??= read()
      .then((value) => {
        last = { value, atMs: clock.monotonicMs() };
        return value;
      })
      .finally(() => (running = undefined));
    return running;
  };
}

function toReading(cells: readonly string[]): GpuReading {
  const [index, uuid, total, used, free, utilisation, temperature, power, reasons] = cells;
  return {
    index: Number(index),
    uuid: uuid ?? "",
    memoryTotalBytes: mebibytes(total),
    memoryUsedBytes: mebibytes(used),
    memoryFreeBytes: mebibytes(free),
    utilisation: scaled(utilisation, 0.01),
    temperatureCelsius: scaled(temperature, 1),
    powerWatts: scaled(power, 1),
    slowdowns: toSlowdowns(reasons),
  };
}

/** `mask`: for example `0x0000000000000004`, or `[N/A]` if the GPU does not report it. */
function toSlowdowns(mask: string | undefined): readonly Slowdown[] | undefined {
  if (mask === undefined || !/^0x[0-9a-f]+$/i.test(mask)) return undefined;
  return slowdowns.filter((reason) => (BigInt(mask) & slowdownBits[reason]) !== 0n);
}

function toProcess([gpuUuid, pid, used]: readonly string[]): GpuProcess {
  return { gpuUuid: gpuUuid ?? "", pid: Number(pid), memoryUsedBytes: mebibytes(used) };
}

function mebibytes(cell: string | undefined): number | undefined {
  return scaled(cell, 1 << 20);
}

/** Returns undefined for `[N/A]`, `[Not Supported]`, `[Unknown Error]` and similar words. */
function scaled(cell: string | undefined, factor: number): number | undefined {
  return cell !== undefined && /^\d+(\.\d+)?$/.test(cell) ? Number(cell) * factor : undefined;
}
