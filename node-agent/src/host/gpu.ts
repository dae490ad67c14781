/** GPU measurements from nvidia-smi. Unknown values are absent, never 0; a host without it has no measurements. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Clock } from "@weiche/shared/time/clock.ts";

export interface GpuReading {
  readonly index: number;
  readonly uuid: string;
  readonly memoryTotalBytes?: number;
  readonly memoryUsedBytes?: number;
  /** Less than total minus used: the driver keeps some. */
  readonly memoryFreeBytes?: number;
  /** 0 to 1. */
  readonly utilisation?: number;
  readonly temperatureCelsius?: number;
  readonly powerWatts?: number;
}

export interface GpuProcess {
  readonly gpuUuid: string;
  readonly pid: number;
  readonly memoryUsedBytes?: number;
}

/** A GPU of NVIDIA, as the inventory of the host names it. */
export interface GpuModel {
  readonly index: number;
  readonly name: string;
  readonly driver: string;
  /** The address in the kernel's form, `0000:3b:00.0`. */
  readonly busAddress: string;
  readonly memoryTotalBytes?: number;
}

export type GpuReader = ReturnType<typeof createGpuReader>;

/** Timeout: nvidia-smi can hang for good when a GPU has fallen off its bus. */
const runMsMax = 5_000;
/** Pauses before the next try, on a host without the program and after a failure. */
const missingMs = 60_000;
const brokenMs = 5_000;

const gpuFields = "index,uuid,memory.total,memory.used,memory.free,utilization.gpu,temperature.gpu,power.draw" as const;
const processFields = "gpu_uuid,pid,used_memory" as const;

export function createGpuReader({
  clock,
  program = "nvidia-smi",
}: {
  readonly clock: Clock;
  readonly program?: string;
}) {
  let silentUntilMs = -Infinity;

  async function query(what: string): Promise<readonly (readonly string[])[] | undefined> {
    if (clock.monotonicMs() < silentUntilMs) return undefined;
    try {
      return await run(program, what);
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      silentUntilMs = clock.monotonicMs() + (isMissing ? missingMs : brokenMs);
      return undefined;
    }
  }

  return {
    /** Readings not older than `ageMsMax`. Undefined: this host measures no GPUs. */
    readGpus: remembered(clock, async () => (await query(`--query-gpu=${gpuFields}`))?.map(toReading)),
    readGpuProcesses: remembered(clock, async () =>
      (await query(`--query-compute-apps=${processFields}`))?.map(toProcess),
    ),
  };
}

/** Asks nvidia-smi for the lasting facts of its GPUs: name, driver, memory, bus address. Rejects where it is missing. */
export async function readGpuModels(program = "nvidia-smi"): Promise<readonly GpuModel[]> {
  const rows = await run(program, "--query-gpu=index,name,driver_version,pci.bus_id,memory.total");
  return rows.flatMap(([index, name, driver, busId, memory]) => {
    // nvidia-smi writes the domain with eight digits, the kernel with four.
    const [, busAddress] = /^(?:0000)?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])$/i.exec(busId ?? "") ?? [];
    if (busAddress === undefined) return [];
    const of = { index: Number(index), name: name!, driver: `nvidia ${driver}`, busAddress: busAddress.toLowerCase() };
    return [{ ...of, memoryTotalBytes: mebibytes(memory) }];
  });
}

/** The cells of the CSV that it writes. */
async function run(program: string, what: string): Promise<readonly (readonly string[])[]> {
  const args = [what, "--format=csv,noheader,nounits"];
  const { stdout } = await promisify(execFile)(program, args, { timeout: runMsMax, killSignal: "SIGKILL" });
  const lines = stdout.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => line.split(",").map((cell) => cell.trim()));
}

/** Runs `read` once at a time, for all concurrent callers. Its result serves later callers who accept its age. */
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
  const [index, uuid, total, used, free, utilisation, temperature, power] = cells;
  return {
    index: Number(index),
    uuid: uuid ?? "",
    memoryTotalBytes: mebibytes(total),
    memoryUsedBytes: mebibytes(used),
    memoryFreeBytes: mebibytes(free),
    utilisation: scaled(utilisation, 0.01),
    temperatureCelsius: scaled(temperature, 1),
    powerWatts: scaled(power, 1),
  };
}

function toProcess([gpuUuid, pid, used]: readonly string[]): GpuProcess {
  return { gpuUuid: gpuUuid ?? "", pid: Number(pid), memoryUsedBytes: mebibytes(used) };
}

function mebibytes(cell: string | undefined): number | undefined {
  return scaled(cell, 1 << 20);
}

/** Undefined for `[N/A]`, `[Not Supported]`, `[Unknown Error]` and the like. */
function scaled(cell: string | undefined, factor: number): number | undefined {
  return cell !== undefined && /^\d+(\.\d+)?$/.test(cell) ? Number(cell) * factor : undefined;
}
