/** Finds whether a PostgreSQL server runs on a data folder, and its address. */
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** Folder of the server's Unix socket; empty if it has none. */
  readonly socketDir: string;
  readonly status: "starting" | "stopping" | "ready" | "standby" | "unknown";
}

/** Reads `postmaster.pid`; undefined if there is none. A power failure can leave it empty; then `pid` is 0. */
export function readPostmaster(cluster: string): Postmaster | undefined {
  let lines: string[];
  try {
    lines = readFileSync(pidFile(cluster), "utf8").split("\n");
  } catch {
    return undefined;
  }
  const [pid, , , port, socketDir, , , status] = lines;
  return {
    pid: Number(pid) || 0,
    port: Number(port) || 0,
    socketDir: socketDir ?? "",
    status: (status?.trim() as Postmaster["status"]) || "unknown",
  };
}

/** Returns whether the process `pid` is this folder's server, and not a zombie or another program with a reused pid. */
export function isPostmaster(pid: number, cluster: string): boolean {
  const words = commandLine(pid);
  return words.includes("-D") && words.includes(cluster);
}

/** Returns the pid of this folder's server: `pid` if it is the server, otherwise, on Linux, a pid found in `/proc`. */
export function runningPostmaster(pid: number, cluster: string): number | undefined {
  if (isPostmaster(pid, cluster)) return pid;
  if (process.platform !== "linux") return undefined;
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).find((one) => isPostmaster(one, cluster));
}

/**
 * Writes a pid that no process can have into `postmaster.pid`. A killed server leaves its pid in the file. If another
 * process has that pid now, the next server would refuse to start. PostgreSQL itself still checks for orphans.
 */
export function disownPostmaster(cluster: string): void {
  const [, ...rest] = readFileSync(pidFile(cluster), "utf8").split("\n");
  writeFileSync(pidFile(cluster), [String(2 ** 31 - 1), ...rest].join("\n"));
}

function pidFile(cluster: string): string {
  return join(cluster, "postmaster.pid");
}

function commandLine(pid: number): string[] {
  if (process.platform !== "linux")
    return spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" })
      .stdout.trim()
      .split(" ");
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}
