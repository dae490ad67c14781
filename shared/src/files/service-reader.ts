/** Finds files that a service needs and that its user cannot read, by trying as this user. */
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Finding } from "./config-file.ts";
import type { ServiceUnit } from "./service-unit.ts";

/** Tries each path: a folder must let the user through, a file must be readable. Prints those that do not. */
const attempt = `for path; do
  if [ -d "$path" ]; then [ -x "$path" ]; else [ -r "$path" ]; fi || printf '%s\\n' "$path"
done`;

/** The user that will read a configuration's files: its number, or `other` for one that is unknown and not root. */
interface ServiceReader {
  readonly uid: number | "other";
  /** Whether the unit starts its program with this configuration. */
  readonly isOfUnit: boolean;
  /** Finds the files that this user cannot read. Files that root hands over, and files that are missing, are fine. */
  findings(files: Iterable<readonly [Finding[0], string]>): Iterable<Finding>;
}

/**
 * Returns the reader of `file`. `variable`: the variable of the unit that names its configuration. Only root can try
 * as another user. Anybody else is taken for the reader.
 */
export function readerOf(file: string, variable: string, unit: ServiceUnit | undefined): ServiceReader {
  const own = process.geteuid?.() ?? "other";
  const isOfUnit = unit?.environment.get(variable) === resolve(file);
  if (own !== 0) return { uid: own, isOfUnit, findings: () => [] };
  const user = isOfUnit ? unit?.user : undefined;
  const ids = user === undefined ? undefined : idsOf(user);
  if (!unit || user === undefined || !ids) return { uid: "other", isOfUnit, findings: () => [] };
  return { uid: ids.uid, isOfUnit, findings: (files) => barredFor(unit, { user, ...ids }, [...files]) };
}

interface ServiceUser {
  readonly user: string;
  readonly uid: number;
  readonly gid: number;
}

/** Returns undefined if this host has no such user. */
function idsOf(user: string): Omit<ServiceUser, "user"> | undefined {
  const [uid, gid] = ["-u", "-g"].map((option) => spawnSync("id", [option, user], { encoding: "utf8" }));
  return uid!.status === 0 ? { uid: Number(uid!.stdout), gid: Number(gid!.stdout) } : undefined;
}

function* barredFor(
  unit: ServiceUnit,
  { user, uid, gid }: ServiceUser,
  files: readonly (readonly [Finding[0], string])[],
): Iterable<Finding> {
  const read = files.filter(([, file]) => !unit.sources.has(file) && statSync(file, { throwIfNoEntry: false }));
  const barred = barredPaths({ user, uid, gid }, [
    ...new Set(read.flatMap(([, file]) => [...foldersAbove(file), file])),
  ]);
  for (const [path, file] of read) {
    const hiddenBy = unit.hiddenBy(file);
    const at = [...foldersAbove(file), file].find((each) => barred.has(each));
    const move = "move it, such as to /etc/weiche";
    if (hiddenBy !== undefined) yield [path, `${unit.name} hides ${file} from the program (${hiddenBy}=yes): ${move}`];
    else if (at === file)
      yield [path, `${user} cannot read ${file}, mode ${modeOf(file)}: chgrp ${user} ${file} && chmod g+r ${file}`];
    else if (at !== undefined)
      yield [path, `${user} cannot read ${file}, because the folder ${at} has mode ${modeOf(at)}: ${move}`];
  }
}

function barredPaths({ user, uid, gid }: ServiceUser, paths: readonly string[]): ReadonlySet<string> {
  const as = [`--reuid=${uid}`, `--regid=${gid}`, "--init-groups"];
  const { stdout, stderr, error } = spawnSync("setpriv", [...as, "sh", "-c", attempt, "sh", ...paths], {
    encoding: "utf8",
  });
  if (error ?? stderr) throw new Error(`cannot check as ${user}: ${error?.message ?? stderr}`);
  return new Set(stdout.split("\n"));
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8).padStart(4, "0");
}

function foldersAbove(file: string): string[] {
  const folder = dirname(file);
  return folder === file ? [] : [...foldersAbove(folder), folder];
}
