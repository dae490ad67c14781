// Runs `npm ci` when the lock file is newer than what is installed. Plain JavaScript without dependencies, since it runs
// before anything is installed, on whatever Node.js the system has. With --dev it also wants the development packages.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const dev = process.argv.includes("--dev");

// The Node.js in node_modules is about to be replaced: npm itself runs on the system's.
const env = {
  ...process.env,
  PATH: (process.env.PATH ?? "")
    .split(delimiter)
    .filter((p) => !p.startsWith(join(root, "node_modules")))
    .join(delimiter),
};

if (!upToDate()) {
  requireNpm();
  console.log(`Installing ${dev ? "with development packages" : "what is needed to run"} (npm ci) …`);
  const { status, error } = spawnSync("npm", ["ci", "--loglevel=error", ...(dev ? [] : ["--omit=dev"])], {
    cwd: root,
    stdio: "inherit",
    env,
  });
  if (status !== 0) {
    console.error(`npm ci failed${error ? `: ${error.message}` : ""}; see the lines above`);
    process.exit(1);
  }
}

/** npm 9 takes our lock file, which replaces packages by a folder, for none at all. */
function requireNpm() {
  const version = spawnSync("npm", ["--version"], { env, encoding: "utf8" }).stdout?.trim() ?? "";
  if (Number.parseInt(version, 10) >= 10) return;
  console.error(`npm 10 or newer is needed, this is ${version || "none"}: npm install --global npm@10`);
  process.exit(1);
}

function upToDate() {
  const installed = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  if (statSync(installed).mtimeMs < statSync(join(root, "package-lock.json")).mtimeMs) return false;
  return !dev || existsSync(join(root, "node_modules", "vitest"));
}
