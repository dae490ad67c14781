/** Runs commands with `--json` and parses their output. */
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { runWeiche } from "@weiche/router/test/cli/run-weiche.ts";

const root = join(import.meta.dirname, "../..");

/** Runs `weiche` in this process. If it fails, throws an error with its stderr. */
export async function weiche(dataDir: string, args: readonly string[]): Promise<unknown> {
  const { code, out, error } = await runWeiche([...args, "--json"], { ...process.env, WEICHE_DATA_DIR: dataDir });
  if (code !== 0) throw new Error(`weiche ${args.join(" ")} ended with ${code}: ${error}`);
  return JSON.parse(out);
}

/** Runs a file of this checkout or an absolute path. Throws as `weiche` does. */
export async function runProgram(file: string, dataDir: string, args: readonly string[]): Promise<unknown> {
  const env = { ...process.env, WEICHE_DATA_DIR: dataDir };
  const { stdout } = await promisify(execFile)(process.execPath, [resolve(root, file), ...args, "--json"], { env });
  return JSON.parse(stdout);
}
