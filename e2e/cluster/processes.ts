/**
 * Reads the processor time and memory of process trees and the machine's other work from /proc. `utime` and `stime` come
 * from the scheduler's exact clock, rounded to 10 ms. Ended children are in `cutime` and `cstime` of their parents.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";

const ticksPerSecond = 100;

interface ProcessLine {
  readonly pid: number;
  readonly parent: number;
  readonly ticks: number;
}

/** Returns the processes by role. A child has the role of its nearest root. */
function membersOf(roots: Readonly<Record<string, number>>): ReadonlyMap<string, readonly number[]> {
  const all = readProcesses();
  const roles = new Map(Object.entries(roots).map(([role, pid]) => [pid, role]));
  const roleOf = (pid: number): string | undefined => {
    for (let at: number | undefined = pid; at; at = all.get(at)?.parent) {
      const role = roles.get(at);
      if (role) return role;
    }
    return undefined;
  };
  const members = new Map<string, number[]>([...roles.values()].map((role) => [role, []]));
  for (const pid of all.keys()) members.get(roleOf(pid) ?? "")?.push(pid);
  return members;
}

/** Returns the seconds of processor time by role, including ended children. */
export function cpuSecondsOf(roots: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const all = readProcesses();
  const sum = (pids: readonly number[]) => pids.reduce((ticks, pid) => ticks + (all.get(pid)?.ticks ?? 0), 0);
  return Object.fromEntries([...membersOf(roots)].map(([role, pids]) => [role, sum(pids) / ticksPerSecond]));
}

/** Returns the bytes of memory by role as Pss, which divides shared pages among their processes. */
export function memoryBytesOf(roots: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const bytes = (pid: number) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) * 1024;
    } catch {
      return 0; // the process has just ended
    }
  };
  return Object.fromEntries(
    [...membersOf(roots)].map(([role, pids]) => [role, pids.reduce((sum, pid) => sum + bytes(pid), 0)]),
  );
}

/** Moves all threads of these process trees to `core`. */
export function pin(roots: Readonly<Record<string, number>>, core: number): void {
  for (const pids of membersOf(roots).values())
    for (const pid of pids) spawnSync("taskset", ["-acp", String(core), String(pid)], { stdio: "ignore" });
}

interface MachineTime {
  /** The seconds that each core was busy. */
  readonly busy: readonly number[];
  /** The seconds that the host of a virtual machine gave to other machines. */
  readonly stolen: number;
}

export function machineTime(): MachineTime {
  const lines = readFileSync("/proc/stat", "utf8").match(/^cpu\d+ .*$/gm) ?? [];
  const rows = lines.map((line) => line.split(/\s+/).slice(1).map(Number));
  const seconds = (ticks: number) => ticks / ticksPerSecond;
  return {
    busy: rows.map(([user = 0, nice = 0, system = 0, , , irq = 0, soft = 0]) =>
      seconds(user + nice + system + irq + soft),
    ),
    stolen: seconds(rows.reduce((sum, row) => sum + (row[7] ?? 0), 0)),
  };
}

/** Returns two cores without shared execution units, for the load and the program under test. May return one core twice. */
export function chooseCores(): { readonly load: number; readonly test: number } {
  const cores = allowedCores();
  const siblings = (core: number) => {
    try {
      return readFileSync(`/sys/devices/system/cpu/cpu${core}/topology/thread_siblings_list`, "utf8").trim();
    } catch {
      return String(core);
    }
  };
  const test = cores.at(-1)!;
  const load = cores.find((core) => siblings(core) !== siblings(test)) ?? cores[0]!;
  return { load, test };
}

function allowedCores(): number[] {
  const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1]!;
  return list.split(",").flatMap((range) => {
    const [from, to = from] = range.split("-").map(Number) as [number, number?];
    return Array.from({ length: to - from + 1 }, (_, n) => from + n);
  });
}

function readProcesses(): ReadonlyMap<number, ProcessLine> {
  const lines = new Map<number, ProcessLine>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
      lines.set(pid, { pid, parent: Number(fields[1]), ticks });
    } catch {
      // The process has just ended.
    }
  }
  return lines;
}

/** Returns how many file descriptors a process needs for this number of streams. */
export function descriptorsFor(streams: number, connectionsPerStream = 2): number {
  return connectionsPerStream * streams + 500;
}

/** Tries to raise the descriptor limit of this process and its children. Returns the limit. */
export function raiseDescriptors(): number {
  spawnSync("prlimit", ["--pid", String(process.pid), "--nofile=131072:131072"], { stdio: "ignore" });
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))![1]!);
}

/** Ends all descendants, because after a failure some would outlive this process. */
export function endDescendants(): void {
  for (const pid of membersOf({ own: process.pid }).get("own")!) if (pid !== process.pid) end(pid);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // The process has just ended.
  }
}
