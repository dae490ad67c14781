// Runs `npm ci` when the installed packages differ from the lock file. With --dev it also wants the development packages.
// Plain JavaScript without dependencies: it runs before anything is installed, on any Node.js that the system has.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const dev = process.argv.includes("--dev");

// The Node.js in node_modules is about to be replaced: npm itself runs on the system's.
const folders = (process.env.PATH ?? "").split(delimiter);
const isSystem = (folder) => !folder.startsWith(join(root, "node_modules"));
const env = { ...process.env, PATH: folders.filter(isSystem).join(delimiter) };

if (!upToDate()) {
  const [command, ...npm] = npmCommand();
  const what = dev ? "with development packages" : "what is needed to run";
  console.log(`Installing ${what} (${[...npm, "ci"].join(" ")}) …`);
  const args = [...npm.slice(1), "ci", "--loglevel=error", ...(dev ? [] : ["--omit=dev"])];
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit", env });
  if (status !== 0) {
    console.error(`npm ci failed${error ? `: ${error.message}` : ""}; see the lines above`);
    process.exit(1);
  }
}

/**
 * Before 11.16 npm does not know `allowScripts` of our package.json and runs the install scripts of every package; npm 9
 * cannot read our lock file either. Those fetch a newer one for this once.
 */
function npmCommand() {
  const version = spawnSync("npm", ["--version"], { env, encoding: "utf8" }).stdout?.trim() ?? "";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 11 || (major === 11 && minor >= 16)) return ["npm", "npm"];
  if (major >= 7) return ["npx", "npx", "--yes", "npm@11"];
  console.error(`npm is needed, 11.16 or newer at best; this is ${version || "none"}`);
  process.exit(1);
}

function upToDate() {
  const installed = join(root, "node_modules", ".package-lock.json");
  const wanted = join(root, "package-lock.json");
  if (!existsSync(installed)) return false;
  if (statSync(installed).mtimeMs < statSync(wanted).mtimeMs && !isSame(wanted, installed)) return false;
  return !dev || existsSync(join(root, "node_modules", "vitest"));
}

/** Compares the packages, since a checkout alone makes the lock file newer. */
function isSame(wanted, installed) {
  const packagesOf = (file) => JSON.parse(readFileSync(file, "utf8")).packages ?? {};
  const [all, there] = [packagesOf(wanted), packagesOf(installed)];
  const differs = (path) =>
    there[path]?.version !== all[path]?.version || there[path]?.integrity !== all[path]?.integrity;
  if (Object.keys(there).some(differs)) return false;
  return Object.entries(all).every(
    ([path, { optional, dev: isDev }]) =>
      path === "" || path in there || optional || (isDev && !dev) || !path.startsWith("node_modules/"),
  );
}
