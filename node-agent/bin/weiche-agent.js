#!/usr/bin/env node
// Starts the command on the pinned Node.js, whatever the system has. Plain JavaScript, so that any Node.js can read it.
import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = join(realpathSync(fileURLToPath(import.meta.url)), "..");
const main = join(here, "../src/status/cli.ts");
if (Number.parseInt(process.versions.node, 10) >= 26) {
  await import(main);
} else {
  const pinned = join(here, "../../node_modules/node/bin/node");
  const { status, error } = spawnSync(pinned, [main, ...process.argv.slice(2)], { stdio: "inherit" });
  if (error) console.error(`weiche-agent: cannot run ${pinned} (${error.code}); install with npm ci`);
  process.exitCode = status ?? 1;
}
