/**
 * Reads the state of the machine from the kernel's files, without a child process. Starting a child forks the whole
 * process, which costs the event loop page faults, whichever thread starts it. Blocks, so run it in its own thread.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readFileSystems, type KeptPath } from "./file-systems.ts";
import { kernelNames, kernelText } from "./kernel-files.ts";
import { parts, type MachineReading, type Part, type Temperature } from "@weiche/shared/machine.ts";

interface MachineReaderOptions {
  readonly kept: readonly KeptPath[];
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Where the kernel's files are. Defaults to `/proc` and `/sys`. */
  readonly proc?: string;
  readonly sys?: string;
}

/** Bytes since the host started. */
interface Traffic {
  readonly diskReadBytes?: number;
  readonly diskWrittenBytes?: number;
  readonly networkReceivedBytes?: number;
  readonly networkSentBytes?: number;
}

export class MachineReader {
  readonly #options: Required<MachineReaderOptions>;
  #before: { readonly traffic: Traffic; readonly atMs: number } | undefined;

  constructor(options: MachineReaderOptions) {
    this.#options = { proc: "/proc", sys: "/sys", ...options };
  }

  read(): MachineReading {
    const { kept, proc, sys } = this.#options;
    const traffic = { ...diskTraffic(proc, sys), ...networkTraffic(proc, sys) };
    return {
      ...loadAverages(proc),
      ...swap(proc),
      ...traffic,
      ...this.#rates(traffic),
      ...frequencyLimit(sys),
      temperatures: temperatures(sys),
      fileSystems: readFileSystems(kept),
    };
  }

  /** Undefined at the first reading, and after a counter has begun anew. */
  #rates(traffic: Traffic) {
    const before = this.#before;
    const atMs = this.#options.nowMs();
    this.#before = { traffic, atMs };
    const rate = (key: keyof Traffic) => {
      const [now, then] = [traffic[key], before?.traffic[key]];
      if (!before || now === undefined || then === undefined || now < then || atMs <= before.atMs) return undefined;
      return ((now - then) * 1000) / (atMs - before.atMs);
    };
    return {
      diskReadBytesPerSecond: rate("diskReadBytes"),
      diskWrittenBytesPerSecond: rate("diskWrittenBytes"),
      networkReceivedBytesPerSecond: rate("networkReceivedBytes"),
      networkSentBytesPerSecond: rate("networkSentBytes"),
    };
  }
}

function loadAverages(proc: string): Partial<MachineReading> {
  const [one, five, fifteen] = kernelText(proc, "loadavg").split(" ").map(Number.parseFloat);
  return { loadAverage1: number(one), loadAverage5: number(five), loadAverage15: number(fifteen) };
}

function swap(proc: string): Partial<MachineReading> {
  const meminfo = kernelText(proc, "meminfo");
  const bytes = (key: string) => {
    const kibibytes = new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(meminfo)?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  };
  const [total, free] = [bytes("SwapTotal"), bytes("SwapFree")];
  return { swapTotalBytes: total, swapUsedBytes: total === undefined || free === undefined ? undefined : total - free };
}

/** The unit of `/proc/diskstats`, whatever the disk's own sectors are. */
const sectorBytes = 512;

/** Counts hardware only, because traffic of a mapped or encrypted disk is counted at the disk below it. */
function diskTraffic(proc: string, sys: string): Traffic {
  const disks = kernelText(proc, "diskstats")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , name]) => name !== undefined && existsSync(join(sys, "block", name, "device")));
  return { diskReadBytes: sum(disks, 5, sectorBytes), diskWrittenBytes: sum(disks, 9, sectorBytes) };
}

/**
 * Counts hardware only, because bridges and tunnels lead through it. In a container without hardware, counts all
 * interfaces except the loopback.
 */
function networkTraffic(proc: string, sys: string): Traffic {
  const all = kernelText(proc, "net/dev")
    .split("\n")
    .flatMap((line) => {
      const [, name, numbers] = /^\s*([^:\s]+):\s*(.+)$/.exec(line) ?? [];
      return name === undefined || name === "lo" ? [] : [[name, ...numbers!.trim().split(/\s+/)]];
    });
  const hardware = all.filter(([name]) => existsSync(join(sys, "class/net", name!, "device")));
  const counted = hardware.length > 0 ? hardware : all;
  return { networkReceivedBytes: sum(counted, 1), networkSentBytes: sum(counted, 9) };
}

/** The part of the machine that a sensor's driver measures. */
const partOfDriver: readonly (readonly [RegExp, Part])[] = [
  [/^(coretemp|k10temp|zenpower|cpu_thermal|cpu-thermal|x86_pkg_temp)/, "cpu"],
  [/^(amdgpu|radeon|nouveau|i915|xe)$/, "gpu"],
  [/^(jc42|spd5118)$/, "memory"],
  [/^(nvme|drivetemp)/, "disk"],
  [/^(mlx5|bnxt|ixgbe|igb|i40e|ice|r8169)/, "network"],
  [/^(acpitz|pch|nct|it8|w83|asus|dell)/, "board"],
];

function temperatures(sys: string): readonly Temperature[] {
  const sensors = kernelNames(sys, "class/hwmon").flatMap((monitor) => {
    const at = join(sys, "class/hwmon", monitor);
    const inputs = kernelNames(at).filter((file) => /^temp\d+_input$/.test(file));
    return inputs.map((input) => ({ driver: kernelText(at, "name"), milli: kernelText(at, input) }));
  });
  const zones = kernelNames(sys, "class/thermal")
    .filter((zone) => zone.startsWith("thermal_zone"))
    .map((zone) => join(sys, "class/thermal", zone))
    .map((at) => ({ driver: kernelText(at, "type"), milli: kernelText(at, "temp") }));
  const hottest = new Map<Part, number>();
  for (const { driver, milli } of [...sensors, ...zones]) {
    const part = partOfDriver.find(([pattern]) => pattern.test(driver))?.[1];
    const celsius = number(Number.parseInt(milli, 10) / 1000);
    if (part && celsius !== undefined) hottest.set(part, Math.max(hottest.get(part) ?? -Infinity, celsius));
  }
  return parts.flatMap((part) => (hottest.has(part) ? [{ part, celsius: hottest.get(part)! }] : []));
}

/** A limit below the maximum means that settings of the host, heat or a power limit slow the core. */
function frequencyLimit(sys: string): Partial<MachineReading> {
  const cores = kernelNames(sys, "devices/system/cpu/cpufreq")
    .map((policy) => join(sys, "devices/system/cpu/cpufreq", policy))
    .map((at) => ({ limit: kilohertz(at, "scaling_max_freq"), max: kilohertz(at, "cpuinfo_max_freq") }))
    .filter((core): core is { limit: number; max: number } => core.limit !== undefined && core.max !== undefined);
  const [most] = cores.toSorted((a, b) => a.limit / a.max - b.limit / b.max);
  return { cpuFrequencyLimitHertz: most?.limit, cpuFrequencyMaxHertz: most?.max };
}

function kilohertz(...path: readonly string[]): number | undefined {
  const value = number(Number.parseInt(kernelText(...path), 10));
  return value === undefined ? undefined : value * 1000;
}

/** Adds up a column. Returns undefined without rows, or if a row has no number there. */
function sum(rows: readonly (readonly (string | undefined)[])[], column: number, unit = 1): number | undefined {
  if (rows.length === 0) return undefined;
  return number(rows.reduce((all, row) => all + Number(row[column]) * unit, 0));
}

function number(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) ? value : undefined;
}
