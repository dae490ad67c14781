#!/usr/bin/env node
// Plain JavaScript, so that any Node.js can begin here: an old one hands over to the one that comes with the packages.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

if (Number.parseInt(process.versions.node, 10) >= 26) {
  const { runCli } = await import("../src/surface/cli/cli.ts");
  process.exitCode = await runCli(process.argv.slice(2), process.env);
} else {
  const pinned = join(root, "node_modules/node/bin/node");
  if (existsSync(pinned) && process.execPath !== pinned) {
    const { status, error } = spawnSync(pinned, process.argv.slice(1), { stdio: "inherit" });
    if (error) console.error(`weiche: ${error.message}`);
    process.exitCode = status ?? 1;
  } else {
    console.error(`weiche: Node.js 26 is needed, this is ${process.versions.node}: run npm ci in ${root}`);
    process.exitCode = 1;
  }
}
