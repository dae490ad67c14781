/** Creates the files of a new embedded database. */
import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { EmbeddedHome } from "./embedded-home.ts";
import { lastWords, startProgram } from "./server-program.ts";

export const superuser = "weiche";

/** Initial configuration of a new cluster. An operator may change it in the cluster's files. */
const initialSettings = {
  shared_buffers: "64MB",
  max_connections: "60",
  max_wal_size: "512MB",
  io_method: "sync",
  jit: "off",
  log_checkpoints: "off",
  timezone: "UTC",
  log_timezone: "UTC",
};

export function passwordFile(directory: string): string {
  return join(directory, "password");
}

/** Creates the cluster in a temporary folder and renames it at the end, so that an interrupted attempt leaves no cluster. */
export async function makeCluster(home: EmbeddedHome, cluster: string): Promise<void> {
  if (!home.user) requireName();
  const half = mkdtempSync(join(home.directory, "cluster-"));
  const password = passwordFile(home.directory);
  writeFileSync(password, randomBytes(24).toString("hex"), { mode: 0o600, flush: true });
  if (home.user) for (const path of [half, password]) chownSync(path, home.user.uid, home.user.gid);
  const settings = Object.entries(initialSettings).map(([name, value]) => `--set=${name}=${value}`);
  const initdb = startProgram(home, home.programs.initdb, [
    `--pgdata=${half}`,
    `--username=${superuser}`,
    `--pwfile=${password}`,
    "--auth-local=trust", // the socket's folder is private
    "--auth-host=scram-sha-256",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--no-instructions",
    // One call for the whole file system instead of one per file is as safe and seconds faster.
    ...(process.platform === "linux" ? ["--sync-method=syncfs"] : []),
    ...settings,
  ]);
  if ((await initdb.exit) !== 0) throw new StartError(`cannot create the database: ${lastWords(home)}`);
  renameSync(half, cluster);
  syncFolder(home.directory);
}

/** Refuses a user id without a name, because initdb needs the name. In containers, a user id may be without a name. */
function requireName(): void {
  try {
    userInfo();
  } catch {
    throw new StartError(
      `the embedded PostgreSQL needs a name for the user id ${process.getuid?.()}: add it to /etc/passwd, or name a server with database.url`,
    );
  }
}

/** Removes folders of interrupted attempts. Their orphans may still write there; the next start then removes the rest. */
export function removeHalfMade(directory: string): void {
  for (const name of readdirSync(directory).filter((entry) => entry.startsWith("cluster-"))) {
    try {
      rmSync(join(directory, name), { recursive: true, force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
    }
  }
}

function syncFolder(directory: string): void {
  const folder = openSync(directory, "r");
  fsyncSync(folder);
  closeSync(folder);
}
