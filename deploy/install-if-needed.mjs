// Runs `npm ci` if the installed packages differ from the lock file. Plain JavaScript without dependencies, because it
// runs before anything is installed, on the Node.js of the system (18 or newer). With --dev it also needs the
// development packages.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dev = process.argv.includes("--dev");
const lock = packagesOf(join(root, "package-lock.json"));

// The Node.js in node_modules is about to be replaced, so npm itself runs on the system's Node.js.
const folders = (process.env.PATH ?? "").split(delimiter);
const isSystem = (folder) => !folder.startsWith(join(root, "node_modules"));
const env = { ...process.env, PATH: folders.filter(isSystem).join(delimiter) };

if (missing().length > 0) {
  requireHost();
  const [command, ...args] = [
    ...npmCommand(),
    "ci",
    "--prefix",
    root,
    "--loglevel=error",
    ...(dev ? [] : ["--omit=dev"]),
  ];
  console.log(
    `Installing ${dev ? "with development packages" : "what is needed to run"} (${[command, ...args].join(" ")}) …`,
  );
  // Runs in another folder, because the npx of npm 9 fails at our package.json if only a part of it is installed.
  const { status, error } = spawnSync(command, args, { cwd: tmpdir(), stdio: "inherit", env });
  if (status !== 0) fail(`npm ci failed${error ? `: ${error.message}` : ""}; see the lines above`);
  const left = missing();
  if (left.length > 0)
    fail(
      `the installation is not whole, npm has left out: ${left.join(", ")}\n` +
        `npm reports no reason; an install script may have failed: ${[command, ...args.filter((one) => one !== "--loglevel=error"), "--foreground-scripts"].join(" ")}`,
    );
}

/** Paths of packages that differ from the lock file: missing, of another version, or not in it. */
function missing() {
  const installed = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return ["node_modules"];
  const there = packagesOf(installed);
  const differs = (path) =>
    there[path]?.version !== lock[path]?.version || there[path]?.integrity !== lock[path]?.integrity;
  const wrong = Object.keys(there).filter((path) => differs(path));
  const gone = Object.entries(lock).filter(([path, entry]) => isWanted(path, entry) && !isThere(path, there));
  return [...new Set([...wrong, ...gone.map(([path]) => path)])];
}

function isWanted(path, { dev: isDev, devOptional, optional, link, os, cpu, libc }) {
  if (!path.startsWith("node_modules/") || link || ((isDev || devOptional) && !dev)) return false;
  // npm silently leaves out an optional package if its install script fails. It rightly leaves out packages for other
  // systems.
  return !optional || (os !== undefined && fits(os, process.platform) && fits(cpu, process.arch) && fits(libc, clib()));
}

function isThere(path, there) {
  if (!(path in there) || !existsSync(join(root, path, "package.json"))) return false;
  return path !== "node_modules/node" || runs(join(root, path, "bin", "node"));
}

/** Reads a list of `os`, `cpu` or `libc` like npm: a name includes it, and a name with `!` includes all others. */
function fits(list, own) {
  if (list === undefined || own === undefined) return true;
  return list.some((one) => (one.startsWith("!") ? one !== `!${own}` : one === own));
}

function clib() {
  if (process.platform !== "linux") return undefined;
  return process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl";
}

function runs(program) {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
}

/**
 * Ends with a list of everything that this host lacks, and one command that installs the packages that its system
 * offers.
 */
function requireHost() {
  const [npm, node] = [versionOf("npm"), versionOf("node")];
  const lacks = [
    ...(npm ? [] : [{ what: "npm, which fetches the packages", apt: "npm", dnf: "nodejs-npm" }]),
    ...lacksLibrary("libatomic.so.1", "libatomic1", "libatomic"),
    ...lacksLibrary("libstdc++.so.6", "libstdc++6", "libstdc++"),
  ];
  const isTooOld = npm && !isAtLeast(npm, 11, 16) && node && !isAtLeast(node, 20, 17);
  if (lacks.length === 0 && !isTooOld) return;
  // A fresh Debian has no lists of packages.
  const installers = { apt: "apt-get update && apt-get install", dnf: "dnf install" };
  const system = Object.keys(installers).find((one) => has(installers[one].split(" ")[0]));
  const remedy = system
    ? `as root, then try again: ${installers[system]} -y ${lacks.map((one) => one[system]).join(" ")}`
    : "with the packages of your system, then try again.";
  fail(
    [
      "nothing is installed yet: this host lacks",
      ...lacks.map(({ what }) => `  ${what}`),
      ...(isTooOld
        ? [
            `  Node.js 20.17 or newer, on which npm runs; this is ${node}`,
            "Debian 12 has no newer one. Best install the packages of a release, which bring theirs (docs/install.md); or put",
            `a newer Node.js into the PATH before this one${lacks.length > 0 ? ", and" : ", then try again."}`,
          ]
        : []),
      ...(lacks.length > 0 ? [`${isTooOld ? "install the rest" : "Install it"} ${remedy}`] : []),
    ].join("\n"),
  );
}

/** Libraries that the pinned Node.js is linked with. Without `ldconfig` the libraries are unknown. */
function lacksLibrary(file, apt, dnf) {
  if (process.platform !== "linux") return [];
  const path = [env.PATH, "/sbin", "/usr/sbin"].join(delimiter);
  const { status, stdout } = spawnSync("ldconfig", ["-p"], { env: { ...env, PATH: path }, encoding: "utf8" });
  if (status !== 0 || stdout.includes(`\t${file} `)) return [];
  return [{ what: `${file}, which Node.js is linked with`, apt, dnf }];
}

function has(program) {
  return !spawnSync(program, ["--version"], { env, stdio: "ignore" }).error;
}

function versionOf(program) {
  const { status, stdout } = spawnSync(program, ["--version"], { env, encoding: "utf8" });
  return status === 0 ? stdout.trim().replace(/^v/, "") : "";
}

/**
 * Before 11.16 npm does not know `allowScripts` of our package.json and runs the install scripts of every package; npm
 * 9 cannot read our lock file either. With these versions, npx fetches a newer npm for this install.
 */
function npmCommand() {
  return isAtLeast(versionOf("npm"), 11, 16) ? ["npm"] : ["npx", "--yes", "npm@11"];
}

function isAtLeast(version, major, minor) {
  const [ownMajor = 0, ownMinor = 0] = version.split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

function packagesOf(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages ?? {};
}

function fail(message) {
  console.error(`weiche: ${message}`);
  process.exit(1);
}
