/**
 * `npm run release`: a tarball and Debian packages for Linux on this machine's processor, in `deploy/release/out`. The
 * same commit gives the same bytes. `--tree` ends when the tree is there, before anything is packed.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version } from "@weiche/shared/program/version.ts";
import { writeDebianPackage, writeTarball } from "./archive.ts";
import { writeText } from "./copy.ts";
import { architecture, debianPackages, stagePackage } from "./debian-packages.ts";
import { root } from "./lock-file.ts";
import { buildTree, platform, type Release } from "./tree.ts";

/** The release of this checkout. */
export function currentRelease(): Release {
  return { version, made: commitDate(), maintainer: maintainer(process.env["WEICHE_MAINTAINER"]) };
}

/** As Debian's policy wants it; whoever hands packages on sets a name and an address that reach them. */
export function maintainer(text = "Weiche maintainers <maintainers@weiche.invalid>"): string {
  if (!/^[^<>\n\r,]+ <[^<>@\s]+@[^<>@\s]+>$/.test(text))
    throw new Error(`WEICHE_MAINTAINER "${text}" is not a name with an address, such as: Jane Doe <jane@example.com>`);
  return text;
}

/** Builds everything into `out`, which is emptied. Returns the files, the tarball first. */
export async function buildRelease(out: string, release: Release): Promise<readonly string[]> {
  const { version, made } = release;
  const name = `weiche-${version}-${platform}`;
  const tree = join(out, name);
  rmSync(out, { recursive: true, force: true });
  await buildTree(tree, release);
  const tarball = join(out, `${name}.tar.zst`);
  await writeTarball(tree, tarball, made);
  const packages = debianPackages.map((one) => {
    const folder = join(out, "debian", one.name);
    const file = join(out, `${one.name}_${version}_${architecture}.deb`);
    stagePackage(one, tree, folder, release);
    writeDebianPackage(folder, file, made);
    return file;
  });
  rmSync(join(out, "debian"), { recursive: true });
  const files = [tarball, ...packages];
  const sums = await Promise.all(files.map(async (file) => `${await digestOf(file)}  ${file.slice(out.length + 1)}\n`));
  writeText(join(out, "SHA256SUMS"), sums.join(""));
  return files;
}

export async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** `SOURCE_DATE_EPOCH` in seconds, as other tools read it, else the date of the commit. */
function commitDate(): Date {
  const { stdout } = spawnSync("git", ["log", "-1", "--format=%ct"], { cwd: root, encoding: "utf8" });
  const seconds = process.env["SOURCE_DATE_EPOCH"] ?? stdout?.trim();
  if (!/^\d+$/.test(seconds ?? ""))
    throw new Error("no commit here: set SOURCE_DATE_EPOCH to the seconds of the release");
  return new Date(Number(seconds) * 1000);
}

if (import.meta.main) {
  const { tree } = parseArgs({ options: { tree: { type: "boolean" } } }).values;
  const out = join(import.meta.dirname, "out");
  const release = currentRelease();
  mkdirSync(out, { recursive: true });
  if (tree) {
    rmSync(out, { recursive: true });
    await buildTree(join(out, `weiche-${release.version}-${platform}`), release);
  } else {
    for (const file of await buildRelease(out, release))
      console.log(`${(statSync(file).size / 1e6).toFixed(1).padStart(6)} MB  ${file}`);
  }
}
