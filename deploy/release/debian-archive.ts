/**
 * Makes an apt archive of a release's packages: `dists/stable` with its index files, signed by the operator's key, and
 * `pool` with the packages.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { writeText } from "./copy.ts";

const suite = "stable";

/** A package and the text of its control file. */
export interface ArchivedPackage {
  readonly file: string;
  readonly control: string;
  /** Debian's name of its processor. */
  readonly architecture: string;
}

/** Writes the archive into `folder`. `key`: the id, fingerprint or address of a secret key that gpg has. */
export function writeArchive(
  folder: string,
  packages: readonly ArchivedPackage[],
  { key, made }: { readonly key: string; readonly made: Date },
): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "pool"), { recursive: true });
  for (const { file } of packages) linkSync(file, join(folder, "pool", basename(file)));
  const architectures = [...new Set(packages.map(({ architecture }) => architecture))].toSorted();
  const indexes = architectures.map((architecture) => {
    const text = packages
      .filter((one) => one.architecture === architecture)
      .map(entryOf)
      .join("\n");
    return [`main/binary-${architecture}/Packages`, text] as const;
  });
  const dists = join(folder, "dists", suite);
  for (const [path, text] of indexes) writeText(join(dists, path), text);
  writeText(join(dists, "Release"), releaseText(architectures, indexes, made));
  gpg(key, "--clearsign", "--output", join(dists, "InRelease"), join(dists, "Release"));
  gpg(key, "--armor", "--detach-sign", "--output", join(dists, "Release.gpg"), join(dists, "Release"));
  gpg(key, "--output", join(folder, "weiche-archive-keyring.gpg"), "--export", key);
}

function entryOf({ file, control }: ArchivedPackage): string {
  const bytes = readFileSync(file);
  return [
    control.trimEnd(),
    `Filename: pool/${basename(file)}`,
    `Size: ${bytes.length}`,
    `SHA256: ${sha256(bytes)}`,
    "",
  ].join("\n");
}

function releaseText(
  architectures: readonly string[],
  indexes: readonly (readonly [path: string, text: string])[],
  made: Date,
): string {
  return [
    "Origin: Weiche",
    "Label: Weiche",
    `Suite: ${suite}`,
    `Codename: ${suite}`,
    `Date: ${made.toUTCString().replace("GMT", "UTC")}`,
    `Architectures: ${architectures.join(" ")}`,
    "Components: main",
    "SHA256:",
    ...indexes.map(([path, text]) => ` ${sha256(Buffer.from(text))} ${Buffer.byteLength(text)} ${path}`),
    "",
  ].join("\n");
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function gpg(key: string, ...args: readonly string[]): void {
  const options = ["--batch", "--yes", "--local-user", key];
  const { error, status, stderr } = spawnSync("gpg", [...options, ...args], { encoding: "utf8" });
  if (error) throw new Error(`cannot run gpg (${(error as NodeJS.ErrnoException).code}): apt-get install gnupg`);
  if (status !== 0) throw new Error(`cannot sign the archive with the key ${key}: ${stderr.trim()}`);
}
