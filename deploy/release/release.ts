/**
 * `npm run release`: a tarball and Debian packages for Linux on this machine's processor, or on each `--arch`, in
 * `deploy/release/out`. The same commit gives the same bytes on any machine. With `--tree`, it builds only the tree,
 * without packing it.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version } from "@weiche/shared/program/version.ts";
import { writeDebianPackage, writeTarball } from "./archive.ts";
import { writeText } from "./copy.ts";
import { architectures, debianPackages, stagePackage } from "./debian-packages.ts";
import { root, type Arch } from "./lock-file.ts";
import { archOf } from "./processor.ts";
import { buildTree, type Release } from "./tree.ts";

/** The version of this checkout. */
export function currentRelease(): Release {
  return { version, made: commitDate(), maintainer: maintainer(process.env["WEICHE_MAINTAINER"]) };
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

/** Empties `out` and builds everything into it. Returns the files, each tarball before its packages. */
export async function buildRelease(
  out: string,
  release: Release,
  arches: readonly Arch[] = [archOf(process.arch)],
): Promise<readonly string[]> {
  const files: string[] = [];
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
      return file;
    });
    rmSync(join(out, "debian"), { recursive: true });
    files.push(tarball, ...packages);
  }
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
  const { stdout } = spawnSync("git", ["log", "-1", "--format=%ct"], { cwd: root, encoding: "utf8" });
  const seconds = process.env["SOURCE_DATE_EPOCH"] ?? stdout?.trim();
  if (!/^\d+$/.test(seconds ?? ""))
    throw new Error("no git commit found: set SOURCE_DATE_EPOCH to the release's time in seconds");
  return new Date(Number(seconds) * 1000);
}

if (import.meta.main) {
  const options = { tree: { type: "boolean" }, arch: { type: "string", multiple: true } } as const;
  const { tree, arch: names = [process.arch] } = parseArgs({ options }).values;
  const arches = names.map(archOf);
  const out = join(import.meta.dirname, "out");
  const release = currentRelease();
  if (tree) {
    rmSync(out, { recursive: true, force: true });
    for (const arch of arches) await buildTree(treeFolder(out, release, arch), release, arch);
  } else {
    for (const file of await buildRelease(out, release, arches))
      console.log(`${(statSync(file).size / 1e6).toFixed(1).padStart(6)} MB  ${file}`);
  }
}
