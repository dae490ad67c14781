/**
 * Handles the parts of a release that depend on the processor. Packages with native code are installed only for this
 * machine's processor, so packages for another processor are fetched from the registry.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { arches, root, type Arch, type LockedPackage } from "./lock-file.ts";
import { insideBinaries, thirdParties } from "./third-party.ts";

const execute = promisify(execFile);

type Wanted = Pick<LockedPackage, "path" | "name" | "version" | "integrity">;

/** Reads a processor's name. Throws if no release is made for it. */
export function archOf(text: string): Arch {
  const arch = arches.find((one) => one === text);
  if (arch === undefined) throw new Error(`no release is made for "${text}": --arch is ${arches.join(" or ")}`);
  return arch;
}

/** Returns the folder of Node.js's binary and licence, relative to the project. */
export function nodePath(arch: Arch): string {
  return `node_modules/node/node_modules/node-linux-${arch}`;
}

/**
 * Fetches into `folder` the packages that a release for `arch` needs and this checkout lacks, at their paths in a
 * checkout.
 */
export async function fetchMissing(arch: Arch, folder: string): Promise<void> {
  const node = insideBinaries().find(({ integrity }) => integrity !== undefined)!;
  const { version, integrity } = node;
  const ofNode: Wanted = { path: nodePath(arch), name: `node-linux-${arch}`, version, integrity: integrity![arch] };
  const wanted: readonly Wanted[] = [ofNode, ...thirdParties().filter((one) => one.arches.includes(arch))];
  for (const one of wanted) if (!existsSync(join(root, one.path))) await fetchPackage(one, join(folder, one.path));
}

/** Unpacks a package from the registry, and makes the links of its installation. Needs npm and tar. */
export async function fetchPackage({ name, version, integrity }: Omit<Wanted, "path">, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const spec = `${name}@${version}`;
  await execute("npm", ["pack", spec, "--pack-destination", folder, "--prefer-offline", "--loglevel=error"], {
    cwd: root,
  });
  const file = join(
    folder,
    readdirSync(folder).find((each) => each.endsWith(".tgz"))!,
  );
  const digest = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
  if (digest !== integrity)
    throw new Error(`the registry's ${spec} differs from the pinned one: it has ${digest}, expected ${integrity}`);
  await execute("tar", ["--extract", "--file", file, "--strip-components=1", "--no-same-owner"], { cwd: folder });
  rmSync(file);
  const links = "scripts/hydrate-symlinks.js";
  if (existsSync(join(folder, links))) await execute(process.execPath, [links], { cwd: folder });
}

/** Values of `e_machine` in an ELF header (glibc's elf.h). */
const machines: Readonly<Record<Arch, number>> = { x64: 62, arm64: 183 };

/** Returns the files that are programs or libraries for another processor. */
export function filesOfOthers(folder: string, files: readonly string[], arch: Arch): readonly string[] {
  return files.filter((file) => {
    const machine = machineOf(join(folder, file));
    return machine !== undefined && machine !== machines[arch];
  });
}

/** Returns an ELF file's processor, or undefined if the file is not an ELF file. */
function machineOf(file: string): number | undefined {
  const head = Buffer.alloc(20);
  const opened = openSync(file, "r");
  try {
    const bytes = readSync(opened, head);
    return bytes === 20 && head.readUInt32BE(0) === 0x7f454c46 ? head.readUInt16LE(18) : undefined;
  } finally {
    closeSync(opened);
  }
}
