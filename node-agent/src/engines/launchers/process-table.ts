/** The host's processes, as far as one must know them to own an engine: which lives, since when, in which group. */
import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { promisify } from "node:util";

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
export const procTable: ProcessTable = {
  async startOf(pid) {
    const stat = await readStat(pid);
    return stat && isAlive(stat.state) ? stat.startTicks : undefined;
  },
  async group(pgid) {
    const stats = await Promise.all((await pids()).map(async (pid) => [pid, await readStat(pid)] as const));
    return stats.filter(([, stat]) => stat?.pgid === pgid && isAlive(stat.state)).map(([pid]) => pid);
  },
  async groupsWith(prefix) {
    const groups = new Map<number, string>();
    for (const pid of await pids()) {
      const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
      const line = environment.split("\0").find((entry) => entry.startsWith(prefix));
      const stat = line === undefined ? undefined : await readStat(pid);
      if (line !== undefined && stat && isAlive(stat.state)) groups.set(stat.pgid, line.slice(prefix.length));
    }
    return groups;
  },
};

/** macOS has no `/proc`; `ps` knows start times to the second, which with the pid still names one process. */
export const psTable: ProcessTable = {
  async startOf(pid) {
    const [state, ...started] = (await ps(["-o", "stat=,lstart=", "-p", String(pid)])).trim().split(/\s+/);
    return state && isAlive(state) ? Date.parse(started.join(" ")) : undefined;
  },
  async group(pgid) {
    const rows = (await ps(["-ax", "-o", "pid=,pgid=,stat="])).split("\n").map((row) => row.trim().split(/\s+/));
    return rows.filter(([, group, state]) => Number(group) === pgid && isAlive(state!)).map(([pid]) => Number(pid));
  },
  groupsWith: () => Promise.resolve(new Map()),
};

async function pids(): Promise<number[]> {
  return (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
}

/** The command's name, field 2, may hold spaces and brackets: fields are counted from its last bracket. */
async function readStat(pid: number): Promise<Stat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0]!, pgid: Number(fields[2]), startTicks: Number(fields[19]) };
}

function isAlive(state: string): boolean {
  return !/^[ZXx]/.test(state);
}

/** Nothing found is exit code 1 and an empty answer. */
async function ps(args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("ps", args, { env: { PATH: "/bin:/usr/bin", LC_ALL: "C" } }).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? "" }),
  );
  return stdout;
}
