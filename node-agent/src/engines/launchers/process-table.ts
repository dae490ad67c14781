/** The host's processes: which one is alive, since when, in which process group. */
import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { promisify } from "node:util";

/** Calls reject on transient errors, such as too many open files; these do not mean that a process is gone. */
export interface ProcessTable {
  /** Start time of the process, which with the pid identifies it. Undefined if it is gone or a zombie. */
  startOf(pid: number): Promise<number | undefined>;
  /** Pids of the processes of a group, without zombies. */
  group(pgid: number): Promise<readonly number[]>;
  /** Groups with an environment line of this prefix, and the rest of the line. Empty if environments are unreadable. */
  groupsWith(environmentPrefix: string): Promise<ReadonlyMap<number, string>>;
}

export function createProcessTable(platform: NodeJS.Platform): ProcessTable {
  return platform === "linux" ? procTable : psTable;
}

interface Stat {
  readonly state: string;
  readonly pgid: number;
  readonly startTicks: number;
}

/** Linux: `/proc`. Start times are clock ticks since boot. */
export const procTable: ProcessTable = createProcTable("/proc");

/** `proc`: the mount point of procfs. */
export function createProcTable(proc: string): ProcessTable {
  const pids = async () => (await readdir(proc)).filter((name) => /^\d+$/.test(name)).map(Number);
  const statOf = async (pid: number) => parseStat(await readOf(`${proc}/${pid}/stat`));
  return {
    async startOf(pid) {
      const stat = await statOf(pid);
      return stat && isAlive(stat.state) ? stat.startTicks : undefined;
    },
    async group(pgid) {
      const stats = await Promise.all((await pids()).map(async (pid) => [pid, await statOf(pid)] as const));
      return stats.filter(([, stat]) => stat?.pgid === pgid && isAlive(stat.state)).map(([pid]) => pid);
    },
    async groupsWith(prefix) {
      const groups = new Map<number, string>();
      for (const pid of await pids()) {
        const environment = (await readOf(`${proc}/${pid}/environ`)) ?? "";
        const line = environment.split("\0").find((entry) => entry.startsWith(prefix));
        const stat = line === undefined ? undefined : await statOf(pid);
        if (line !== undefined && stat && isAlive(stat.state)) groups.set(stat.pgid, line.slice(prefix.length));
      }
      return groups;
    },
  };
}

/** macOS has no `/proc`; `ps` reports start times in seconds, which with the pid still identify a process. */
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

/** The process is gone, or belongs to another user and so is no engine of this agent. */
const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM"]);

async function readOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (absent.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}

/** Field 2, the command name, may contain spaces and brackets: fields are counted from the last bracket. */
function parseStat(text: string | undefined): Stat | undefined {
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0]!, pgid: Number(fields[2]), startTicks: Number(fields[19]) };
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
