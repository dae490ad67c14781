/** The peers that come as npm packages: a lock file of their own, installed when the bench first needs them. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const directory = import.meta.dirname;

/** Returns why the peers could not be installed. The bench then goes on without them. */
export function installPeers(): string | undefined {
  if (existsSync(join(directory, "node_modules/@portkey-ai/gateway"))) return undefined;
  console.log("installing the peers of the bench (npm ci --prefix benchmarks/peers) …");
  const args = ["ci", "--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync("npm", args, { cwd: directory, stdio: "inherit" });
  return status === 0 ? undefined : "the peers from npm could not be installed; the bench goes on without them";
}
