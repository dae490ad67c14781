/** Makes the Debian packages of a release from its tree: one for the common files, and one for each part. */
import { linkSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { copyFile, copyFolder, filesBelow, writeText } from "./copy.ts";
import { root, type Arch } from "./lock-file.ts";
import { parts, type PartName } from "./parts.ts";
import { unitFor, type Release } from "./tree.ts";

const prefix = "/usr/lib/weiche";
/** Debian's names of processors. */
export const architectures: Readonly<Record<Arch, string>> = { x64: "amd64", arm64: "arm64" };

interface DebianPackage {
  readonly name: string;
  readonly summary: string;
  /** Lines of the long description. */
  readonly description: readonly string[];
  readonly depends: readonly string[];
  readonly provides?: string;
  readonly recommends?: string;
  /** Returns whether a file of the tree belongs to the package. */
  readonly owns: (path: string) => boolean;
  /** The units' files in `deploy/systemd`. */
  readonly units?: readonly string[];
  /** Examples in `deploy` that become files in `/etc/weiche`. dpkg asks before it replaces a changed one. */
  readonly conffiles?: readonly string[];
  /** Users in `weiche.sysusers`, by the start of their lines. */
  readonly users?: readonly string[];
  readonly polkit?: string;
}

/** The version of Node.js of this release. */
const node = (
  JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: Readonly<Record<"node", string>> }
).dependencies.node;
/**
 * A part runs on the Node.js of a newer or somewhat older release. With the exact version, apt would remove a part that
 * is not updated in the same command.
 */
const runtime = ["weiche-runtime", `weiche-node (>= ${node.split(".")[0]})`];

export const debianPackages: readonly DebianPackage[] = [
  {
    name: "weiche-runtime",
    summary: "what all parts of Weiche need",
    description: ["The pinned Node.js, documentation, licences and the bill of materials."],
    depends: ["libc6 (>= 2.28)", "libstdc++6 (>= 12)", "libgcc-s1", "libatomic1"],
    provides: `weiche-node (= ${node})`,
    owns: (path) => Object.keys(parts).every((name) => !ownedBy(name as PartName, path)),
  },
  {
    name: "weiche-router",
    summary: "router of Weiche: open language models from your own GPU servers",
    description: [
      "The public API with accounts, keys, limits, usage and credits, the portal,",
      "an embedded PostgreSQL, and the command weiche.",
    ],
    depends: [...runtime, "systemd (>= 250)"],
    owns: (path) => ownedBy("router", path),
    units: ["weiche-router.service", "weiche-backup.service", "weiche-backup.timer"],
    conffiles: ["router.yaml", "catalogue.yaml"],
    users: ["u weiche-router "],
  },
  {
    name: "weiche-node-agent",
    summary: "agent of a GPU host that serves models for Weiche",
    description: [
      "Starts, switches and watches engines such as vLLM and llama-server, and counts",
      "what they generate. Brings no engine; weiche-embedded-engine is one.",
    ],
    depends: [...runtime, "systemd (>= 250)"],
    owns: (path) => ownedBy("node-agent", path),
    units: ["weiche-node-agent.service", "weiche-engine@.service"],
    conffiles: ["agent.yaml"],
    users: ["u weiche-agent ", "u weiche-engine ", "m "],
    polkit: "50-weiche-engines.rules",
  },
  {
    name: "weiche-embedded-engine",
    summary: "embedded engine of Weiche: llama.cpp on the CPU",
    description: ["An engine for GGUF files, and a model of 3 MB to try Weiche with."],
    depends: runtime,
    owns: (path) => ownedBy("embedded-engine", path),
  },
];

/** Makes a package's layout in `folder` for dpkg-deb. Its files are hard links to files of the tree. */
export function stagePackage(one: DebianPackage, tree: string, folder: string, release: Release, arch: Arch): void {
  rmSync(folder, { recursive: true, force: true });
  for (const path of filesBelow(tree)) if (one.owns(path)) place(join(tree, path), join(folder, prefix, path));
  for (const path of filesBelow(join(folder, prefix)).filter((each) => each.startsWith("bin/"))) {
    mkdirSync(join(folder, "usr/bin"), { recursive: true });
    symlinkSync(`../lib/weiche/${path}`, join(folder, "usr", path));
  }
  for (const unit of one.units ?? []) writeText(join(folder, "usr/lib/systemd/system", unit), unitFor(prefix, unit));
  for (const file of one.conffiles ?? []) copyFile(join(root, "deploy", file), join(folder, "etc/weiche", file));
  if (one.users) writeText(join(folder, `usr/lib/sysusers.d/${one.name}.conf`), sysusersOf(one.users));
  if (one.polkit)
    copyFile(join(root, "deploy/systemd", one.polkit), join(folder, "usr/share/polkit-1/rules.d", one.polkit));
  writeText(join(folder, `usr/share/doc/${one.name}/copyright`), copyright());
  addControl(one, folder, release, arch);
}

/** Pages belong to no part. They are all in one package, so that links between them work. */
function ownedBy(name: PartName, path: string): boolean {
  const { folder, files, commands } = parts[name];
  return (
    !path.endsWith(".md") &&
    (path.startsWith(`${folder}/`) ||
      files.some((file) => path === file || path.startsWith(`${file}/`)) ||
      Object.keys(commands).some((command) => path === `bin/${command}`))
  );
}

function place(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  if (lstatSync(from).isSymbolicLink()) symlinkSync(readlinkSync(from), to);
  else linkSync(from, to);
}

function sysusersOf(users: readonly string[]): string {
  const lines = readFileSync(join(root, "deploy/systemd/weiche.sysusers"), "utf8").split("\n");
  return `${lines.filter((line) => users.some((each) => line.startsWith(each))).join("\n")}\n`;
}

function copyright(): string {
  return `${readFileSync(join(root, "NOTICE"), "utf8").trimEnd()}\n\nThe licence: ${prefix}/LICENSE and /usr/share/common-licenses/Apache-2.0.\nThose of others: ${prefix}/deploy/release/THIRD-PARTY.md and ${prefix}/licenses.\n`;
}

function addControl(one: DebianPackage, folder: string, release: Release, arch: Arch): void {
  const files = filesBelow(folder);
  const bytes = files.map((file) => lstatSync(join(folder, file)).size).reduce((sum, size) => sum + size, 0);
  const control = join(folder, "DEBIAN");
  const scripts = join(import.meta.dirname, "debian", one.name);
  const conffiles = (one.conffiles ?? []).map((file) => `/etc/weiche/${file}\n`).join("");
  writeText(join(control, "md5sums"), files.map((file) => sumLine(folder, file)).join(""));
  if (conffiles !== "") writeText(join(control, "conffiles"), conffiles);
  if (one.units) copyFolder(scripts, control);
  writeText(join(control, "control"), controlOf(one, release, arch, bytes));
}

/** Returns the package's control file. `bytes`: the size of its files. */
export function controlOf(one: DebianPackage, { version, maintainer }: Release, arch: Arch, bytes: number): string {
  return [
    `Package: ${one.name}`,
    `Version: ${version}`,
    `Architecture: ${architectures[arch]}`,
    `Maintainer: ${maintainer}`,
    "Section: net",
    "Priority: optional",
    `Installed-Size: ${Math.ceil(bytes / 1024)}`,
    ...(one.provides === undefined ? [] : [`Provides: ${one.provides}`]),
    `Depends: ${one.depends.join(", ")}`,
    ...(one.recommends ? [`Recommends: ${one.recommends}`] : []),
    `Description: ${one.summary}`,
    ...one.description.map((line) => ` ${line}`),
    "",
  ].join("\n");
}

function sumLine(folder: string, file: string): string {
  if (lstatSync(join(folder, file)).isSymbolicLink()) return "";
  return `${createHash("md5")
    .update(readFileSync(join(folder, file)))
    .digest("hex")}  ${file}\n`;
}
