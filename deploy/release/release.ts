/**
 * `npm run release`: a tarball and Debian packages for Linux on this machine's processor, or on each `--arch`, in
 * `deploy/release/out`. The same commit gives the same bytes on any machine. With `--tree`, it builds only the tree,
 * without packing it. With `--sign KEY`, it also makes an apt archive in `apt`, signed by this key of gpg.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version } from "@weiche/shared/program/version.ts";
import { writeDebianPackage, writeTarball } from "./archive.ts";
import { writeText } from "./copy.ts";
import { writeArchive, type ArchivedPackage } from "./debian-archive.ts";
import { architectures, debianPackages, stagePackage } from "./debian-packages.ts";
import { root, type Arch } from "./lock-file.ts";
import { archOf } from "./processor.ts";
import { buildTree, type Release } from "./tree.ts";

/** The release of this checkout's commit. */
export function currentRelease(): Release {
  const made = commitDate();
  return { version: versionOf(made), made, maintainer: maintainer(process.env["WEICHE_MAINTAINER"]) };
}

/**
 * Returns the version of package.json for a commit with its tag, such as `v0.1.0`. Other commits have later versions of
 * their own, which sort by time: `0.1.0+git202611271305.593de356`.
 */
function versionOf(made: Date): string {
  const commit = git("rev-parse", "HEAD");
  if (commit === undefined || git("tag", "--points-at", "HEAD")?.split("\n").includes(`v${version}`)) return version;
  return `${version}+git${made.toISOString().replaceAll(/\D/g, "").slice(0, 12)}.${commit.slice(0, 8)}`;
}

/**
 * Checks the maintainer's form, as required by Debian's policy. Distributors of the packages set their own name and
 * address.
 */
export function maintainer(text = "Weiche maintainers <maintainers@weiche.invalid>"): string {
  if (!/^[^<>\n\r,]+ <[^<>@\s]+@[^<>@\s]+>$/.test(text))
    throw new Error(`WEICHE_MAINTAINER "${text}" is not a name with an address, such as: Jane Doe <jane@example.com>`);
  return text;
}

/**
 * Empties `out` and builds everything into it. Returns the files, each tarball before its packages. `signingKey`: a key
 * of gpg, for an apt archive.
 */
export async function buildRelease(
  out: string,
  release: Release,
  arches: readonly Arch[] = [archOf(process.arch)],
  signingKey?: string,
): Promise<readonly string[]> {
  const files: string[] = [];
  const archived: ArchivedPackage[] = [];
  rmSync(out, { recursive: true, force: true });
  for (const arch of arches) {
    const tree = treeFolder(out, release, arch);
    await buildTree(tree, release, arch);
    const tarball = `${tree}.tar.zst`;
    await writeTarball(tree, tarball, release.made);
    const packages = debianPackages.map((one) => {
      const folder = join(out, "debian", one.name);
      const file = join(out, `${one.name}_${release.version}_${architectures[arch]}.deb`);
      stagePackage(one, tree, folder, release, arch);
      writeDebianPackage(folder, file, release.made);
      const control = readFileSync(join(folder, "DEBIAN/control"), "utf8");
      archived.push({ file, control, architecture: architectures[arch] });
      return file;
    });
    rmSync(join(out, "debian"), { recursive: true });
    files.push(tarball, ...packages);
  }
  if (signingKey !== undefined) writeArchive(join(out, "apt"), archived, { key: signingKey, made: release.made });
  const sums = await Promise.all(files.map(async (file) => `${await digestOf(file)}  ${file.slice(out.length + 1)}\n`));
  writeText(join(out, "SHA256SUMS"), sums.join(""));
  return files;
}

function treeFolder(out: string, { version }: Release, arch: Arch): string {
  return join(out, `weiche-${version}-linux-${arch}`);
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** Returns `SOURCE_DATE_EPOCH` (in seconds, as in other tools), or the commit's date. */
function commitDate(): Date {
  const seconds = process.env["SOURCE_DATE_EPOCH"] ?? git("log", "-1", "--format=%ct");
  if (!/^\d+$/.test(seconds ?? ""))
    throw new Error("no git commit found: set SOURCE_DATE_EPOCH to the release's time in seconds");
  return new Date(Number(seconds) * 1000);
}

function git(...args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

if (import.meta.main) {
  const options = {
    tree: { type: "boolean" },
    arch: { type: "string", multiple: true },
    sign: { type: "string" },
  } as const;
  const { tree, arch: names = [process.arch], sign } = parseArgs({ options }).values;
  const arches = names.map(archOf);
  const out = join(import.meta.dirname, "out");
  const release = currentRelease();
  if (tree) {
    rmSync(out, { recursive: true, force: true });
    for (const arch of arches) await buildTree(treeFolder(out, release, arch), release, arch);
  } else {
    for (const file of await buildRelease(out, release, arches, sign))
      console.log(`${(statSync(file).size / 1e6).toFixed(1).padStart(6)} MB  ${file}`);
  }
}
