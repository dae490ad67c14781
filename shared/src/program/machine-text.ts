/** Describes a GPU host for people, in lines and tables. Unknown facts have no line. */
import { counted, gibibytesOf } from "./amounts.ts";
import type { MeasuredFileSystem, Machine, MachineReading } from "../machine.ts";
import { plainText } from "./plain-text.ts";
import type { Cell } from "./table.ts";

interface TextTable {
  readonly headers: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** The host's load, which is measured more often than the machine is read. */
interface HostUse {
  /** 0 to 1. */
  readonly cpuUse?: number;
  readonly memoryTotalBytes?: number;
  readonly memoryAvailableBytes?: number;
}

interface KnownMachine {
  readonly machine?: Machine;
  readonly reading?: MachineReading;
  readonly host?: HostUse;
}

/** Returns a line for each known fact: a word, padded to one width, and its value. */
export function machineLines({ machine, reading, host }: KnownMachine): readonly string[] {
  const facts = [
    ...(machine ? machineFacts(machine) : []),
    ...(host ? hostFacts(host) : []),
    ...(reading ? readingFacts(reading) : []),
  ];
  const known = facts.filter((fact): fact is [string, string] => fact[1] !== undefined);
  const width = Math.max(0, ...known.map(([word]) => word.length));
  return known.map(([word, text]) => `${word.padEnd(width)}  ${plainText(text)}`);
}

type Fact = readonly [word: string, text: string | undefined];

function machineFacts(machine: Machine): readonly Fact[] {
  const { processorSockets: sockets, processorCores: cores, processorThreads: threads } = machine;
  const virtual = machine.hypervisor === undefined ? undefined : `virtual, on ${machine.hypervisor}`;
  const kernel = machine.kernel === undefined ? undefined : `kernel ${machine.kernel}`;
  const numbers = [countedIf(sockets, "socket"), countedIf(cores, "core"), countedIf(threads, "thread")];
  return [
    ["machine", listed([spaced(machine.manufacturer, machine.model), virtual])],
    ["processor", listed([machine.processor, ...numbers])],
    ["system", listed([machine.operatingSystem, kernel])],
    ["modules", listed(memoryModules(machine))],
  ];
}

function hostFacts({ cpuUse, memoryTotalBytes: total, memoryAvailableBytes: available }: HostUse): readonly Fact[] {
  const used = total === undefined || available === undefined ? undefined : total - available;
  return [
    ["use", cpuUse === undefined ? undefined : `${percent(cpuUse)} of the processors`],
    ["memory", used === undefined ? undefined : `${gibibytesOf(used)} of ${gibibytesOf(total)} in use`],
  ];
}

function memoryModules({ memoryModules: modules }: Machine): readonly string[] {
  const named = modules.map(({ sizeBytes, type = "", megatransfers }) =>
    `${gibibytesOf(sizeBytes)} ${type}${megatransfers === undefined ? "" : ` at ${megatransfers} MT/s`}`.trimEnd(),
  );
  return [...Map.groupBy(named, (name) => name)].map(([name, all]) => `${all.length} × ${name}`);
}

function readingFacts(reading: MachineReading): readonly Fact[] {
  const { loadAverage1, loadAverage5, loadAverage15, swapTotalBytes, swapUsedBytes } = reading;
  const { cpuFrequencyLimitHertz: limit, cpuFrequencyMaxHertz: max } = reading;
  const loads = [loadAverage1, loadAverage5, loadAverage15].filter((load) => load !== undefined);
  const swap = swapTotalBytes === 0 ? "none" : `${gibibytesOf(swapUsedBytes)} of ${gibibytesOf(swapTotalBytes)}`;
  return [
    ["load", loads.length < 3 ? undefined : `${loads.map((load) => load.toFixed(1)).join(", ")} (1, 5, 15 minutes)`],
    ["swap", swapTotalBytes === undefined ? undefined : swap],
    ["frequency", limit === undefined || max === undefined ? undefined : `${gigahertz(limit)} of ${gigahertz(max)}`],
    ["disks", both("read", reading.diskReadBytesPerSecond, "written", reading.diskWrittenBytesPerSecond)],
    ["network", both("received", reading.networkReceivedBytesPerSecond, "sent", reading.networkSentBytesPerSecond)],
    ["heat", listed(reading.temperatures.map(({ part, celsius }) => `${part} ${Math.round(celsius)} °C`))],
  ];
}

function both(first: string, one: number | undefined, second: string, other: number | undefined): string | undefined {
  if (one === undefined || other === undefined) return undefined;
  return `${perSecond(one)} ${first}, ${perSecond(other)} ${second}`;
}

export function fileSystemTable({ fileSystems }: MachineReading): TextTable {
  return {
    headers: ["FILE SYSTEM", "HOLDS", "SIZE", "FREE", "INODES FREE"],
    rows: fileSystems.map(({ mount, holds, sizeBytes, availableBytes, inodes, inodesFree }) => [
      ...[mount, holds.join(", "), gibibytesOf(sizeBytes), gibibytesOf(availableBytes)],
      inodes === undefined || inodesFree === undefined ? undefined : percent(inodesFree / inodes),
    ]),
  };
}

/** Returns whether less than 5 % of the bytes or of the inodes are free. */
export function isNearlyFull({ sizeBytes, availableBytes, inodes, inodesFree }: MeasuredFileSystem): boolean {
  const isShort = inodes !== undefined && inodesFree !== undefined && inodesFree < inodes / 20;
  return availableBytes < sizeBytes / 20 || isShort;
}

/** A GPU's load, which is measured more often than the machine is read. */
interface GpuUse {
  readonly index: number;
  readonly memoryUsedBytes?: number;
  /** 0 to 1. */
  readonly utilisation?: number;
  readonly temperatureCelsius?: number;
  readonly powerWatts?: number;
}

/** `uses`: the GPUs' loads, matched by index. */
export function gpuTable({ gpus }: Machine, uses: readonly GpuUse[] = []): TextTable {
  return {
    headers: ["GPU", "BUS", "VENDOR", "NAME", "DRIVER", "MEMORY", ...(uses.length > 0 ? useHeaders : [])],
    rows: gpus.map(({ index, busAddress, vendor, name, driver, memoryTotalBytes }) => [
      ...[index, busAddress, vendor, name, driver, gibibytesOf(memoryTotalBytes)],
      ...(uses.length > 0 ? useCells(uses.find((use) => use.index === index)) : []),
    ]),
  };
}

const useHeaders = ["USED", "LOAD", "TEMP", "POWER"];

function useCells(use: GpuUse | undefined): readonly Cell[] {
  const { memoryUsedBytes, utilisation, temperatureCelsius, powerWatts } = use ?? {};
  return [
    gibibytesOf(memoryUsedBytes),
    utilisation === undefined ? undefined : percent(utilisation),
    temperatureCelsius === undefined ? undefined : `${temperatureCelsius} °C`,
    powerWatts === undefined ? undefined : `${Math.round(powerWatts)} W`,
  ];
}

export function diskTable({ disks }: Machine): TextTable {
  return {
    headers: ["DISK", "SIZE", "KIND", "MODEL"],
    rows: disks.map(({ name, sizeBytes, kind, model }) => [name, gibibytesOf(sizeBytes), kind, model]),
  };
}

export function interfaceTable({ networkInterfaces }: Machine): TextTable {
  return {
    headers: ["INTERFACE", "STATE", "SPEED", "MTU"],
    rows: networkInterfaces.map(({ name, up, bitsPerSecond, mtu }) => [
      ...[name, up ? "up" : "down", bitsPerSecond === undefined ? undefined : `${bitsPerSecond / 1e9} Gbit/s`, mtu],
    ]),
  };
}

function listed(parts: readonly (string | undefined)[]): string | undefined {
  const known = parts.filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.join(", ");
}

function spaced(...words: readonly (string | undefined)[]): string | undefined {
  const known = words.filter((word) => word !== undefined);
  return known.length === 0 ? undefined : known.join(" ");
}

function countedIf(count: number | undefined, of: string): string | undefined {
  return count === undefined ? undefined : counted(count, of);
}

function perSecond(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB/s`;
}

function gigahertz(hertz: number): string {
  return `${(hertz / 1e9).toFixed(1)} GHz`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
