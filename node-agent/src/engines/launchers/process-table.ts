/** The host's processes, as far as one must know them to own an engine: which lives, since when, in which group. */
import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { promisify } from "node:util";

/** Each call rejects where the host cannot say now, as for want of file descriptors: nothing is known gone for that. */
export interface ProcessTable {
  /** When the process started: with the pid it names one process. Undefined if it is gone or only waits to be reaped. */
  startOf(pid: number): Promise<number | undefined>;
  /** Living processes of a group; those that only wait to be reaped do not count. */
  group(pgid: number): Promise<readonly number[]>;
  /** Groups with a process whose environment has a line that starts so. Empty where environments cannot be read. */
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

/** `proc` is the folder that the kernel tells of its processes in. */
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

/** macOS has no `/proc`; `ps` knows start times to the second, which with the pid still names one process. */
export const psTable: ProcessTable = createPsTable("/bin:/usr/bin");

/** `path` is where `ps` is looked for. */
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

/** The process is gone, or another user's that may not be looked into, and so no engine of this agent. */
const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM"]);

async function readOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (absent.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}

/** The command's name, field 2, may hold spaces and brackets: fields are counted from its last bracket. */
function parseStat(text: string | undefined): Stat | undefined {
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0]!, pgid: Number(fields[2]), startTicks: Number(fields[19]) };
}

function isAlive(state: string): boolean {
  return !/^[ZXx]/.test(state);
}

/** Nothing found is exit code 1 and an empty answer. */
async function answerOfPs(path: string, args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)("ps", args, { env: { PATH: path, LC_ALL: "C" } })).stdout;
  } catch (error) {
    const { code, stdout } = error as { code?: unknown; stdout: string };
    if (code !== 1) throw error;
    return stdout;
  }
}
