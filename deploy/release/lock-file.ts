/** Reads package-lock.json: the packages of a workspace, with version, licence and digest. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** Processors with releases, all with Linux and glibc. Node.js and npm use the same names. */
export const arches = ["x64", "arm64"] as const;
export type Arch = (typeof arches)[number];

export interface LockedPackage {
  /** The path of its installation, relative to the project. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  /** The digest of the registry's package, as `sha512-…`. */
  readonly integrity: string;
  /** Processors whose releases contain the package. */
  readonly arches: readonly Arch[];
}

interface LockEntry {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly resolved?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Readonly<Record<string, LockEntry>>;
};

/**
 * Returns the packages `names`, as found from the workspace `from` (its path, or "" for the project), and all that they
 * need. They are sorted by name and version. Packages for systems without a release are left out.
 */
export function packagesOf(names: Iterable<string>, from: string): readonly LockedPackage[] {
  const found = new Map<string, LockedPackage>();
  const visit = (name: string, inside: string): void => {
    const path = resolvePath(name, inside);
    const entry = path === undefined ? undefined : packages[path];
    if (path === undefined || !entry?.version || found.has(path)) return;
    const { version, license = "", integrity = "" } = entry;
    const those = archesOf(name, entry);
    if (those.length === 0) return;
    if (integrity !== "") found.set(path, { path, name, version, license, integrity, arches: those });
    for (const each of dependenciesOf(entry)) visit(each, path);
  };
  for (const name of names) visit(name, from);
  return [...found.values()].toSorted((a, b) => compare(a.name, b.name) || compare(a.version, b.version));
}

/** Returns the dependencies in a workspace's own package.json, except our workspaces. */
export function dependenciesOfWorkspace(path: string): readonly string[] {
  return dependenciesOf(packages[path]!).filter((name) => !name.startsWith("@weiche/"));
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function dependenciesOf({ dependencies, optionalDependencies }: LockEntry): readonly string[] {
  return Object.keys({ ...dependencies, ...optionalDependencies });
}

/** Finds a package as Node.js does: in the folder itself, then in each folder above. */
function resolvePath(name: string, inside: string): string | undefined {
  for (let folder = inside; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/")))) {
    const path = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (packages[path]) return path;
    if (folder === "") return undefined;
  }
}

function archesOf(name: string, { os, cpu, libc }: LockEntry): readonly Arch[] {
  const allows = (list: readonly string[] | undefined, wanted: string) => list === undefined || list.includes(wanted);
  if (!allows(os, "linux") || !allows(libc, "glibc")) return [];
  // npm also installs llama.cpp's builds for other processors.
  const build = /^@node-llama-cpp\/linux-(.*)$/.exec(name)?.[1];
  return arches.filter((arch) => allows(cpu, arch) && (build === undefined || build === arch));
}
