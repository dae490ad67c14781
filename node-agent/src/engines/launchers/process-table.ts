/** The host's processes: which are alive, since when, and in which process group. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { parseStat, readPids, type ProcStat } from "../../host/proc.ts";

/** Calls reject on transient errors, such as too many open files, because these do not mean that a process is gone. */
export interface ProcessTable {
  /**
   * Returns the start time of the process, which identifies it together with the pid. Undefined if it is gone or a
   * zombie.
   */
  startOf(pid: number): Promise<number | undefined>;
  /** Returns the pids of the processes of a group, without zombies. */
  group(pgid: number): Promise<readonly number[]>;
  /**
   * Returns groups with an environment line of this prefix, and the rest of the line. Empty if environments are
   * unreadable.
   */
  groupsWith(environmentPrefix: string): Promise<ReadonlyMap<number, string>>;
}

export function createProcessTable(platform: NodeJS.Platform): ProcessTable {
  return platform === "linux" ? procTable : psTable;
}

/** Linux: `/proc`. Start times are clock ticks since boot. */
export const procTable: ProcessTable = createProcTable("/proc");

/** `proc`: the mount point of procfs. */
export function createProcTable(proc: string): ProcessTable {
  const statOf = async (pid: number): Promise<ProcStat | undefined> => {
    const text = await readOf(`${proc}/${pid}/stat`);
    return text === undefined ? undefined : parseStat(text);
  };
  return {
    async startOf(pid) {
      const stat = await statOf(pid);
      return stat && isAlive(stat.state) ? stat.startTicks : undefined;
    },
    async group(pgid) {
      const stats = await Promise.all((await readPids(proc)).map(async (pid) => [pid, await statOf(pid)] as const));
      return stats.filter(([, stat]) => stat?.group === pgid && isAlive(stat.state)).map(([pid]) => pid);
    },
    async groupsWith(prefix) {
      const groups = new Map<number, string>();
      for (const pid of await readPids(proc)) {
        const environment = (await readOf(`${proc}/${pid}/environ`)) ?? "";
        const line = environment.split("\0").find((entry) => entry.startsWith(prefix));
        const stat = line === undefined ? undefined : await statOf(pid);
        if (line !== undefined && stat && isAlive(stat.state)) groups.set(stat.group, line.slice(prefix.length));
      }
      return groups;
    },
  };
}

/** macOS has no `/proc`. `ps` reports start times in seconds, which still identify a process together with the pid. */
export const psTable: ProcessTable = createPsTable("/bin:/usr/bin");

/** `path`: the search path for `ps`. */
export function createPsTable(path: string): ProcessTable {
  const ps = (...args: string[]) => answerOfPs(path, args);
  return {
    async startOf(pid) {
      const [state, ...started] = (await ps("-o", "stat=,lstart=", "-p", String(pid))).trim().split(/\s+/);
      return state && isAlive(state) ? Date.parse(started.join(" ")) : undefined;
    },
    async group(pgid) {
      const rows = (await ps("-ax", "-o", "pid=,pgid=,stat=")).split("\n").map((row) => row.trim().split(/\s+/));
      return rows.filter(([, group, state]) => Number(group) === pgid && isAlive(state!)).map(([pid]) => Number(pid));
    },
    groupsWith: () => Promise.resolve(new Map()),
  };
}

/** The process has ended, or it belongs to another user and cannot be an engine of this agent. */
const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM"]);

async function readOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (absent.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}

function isAlive(state: string): boolean {
  return !/^[ZXx]/.test(state);
}

/** `ps` exits with code 1 and an empty output if it finds nothing. */
async function answerOfPs(path: string, args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)("ps", args, { env: { PATH: path, LC_ALL: "C" } })).stdout;
  } catch (error) {
    const { code, stdout } = error as { code?: unknown; stdout: string };
    if (code !== 1) throw error;
    return stdout;
  }
}
