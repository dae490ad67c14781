/**
 * Serves modules that are preloaded into every program of a cluster (`NODE_OPTIONS=--import=URL?directory=PATH`). Finds the
 * file with which a test controls this program, `router` or `node-agent`. Undefined in other programs and in threads.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread } from "node:worker_threads";

export function fileOfProgram(importUrl: string): string | undefined {
  const [, program] = /(router|node-agent)\/src\/main\.ts$/.exec(process.argv[1] ?? "") ?? [];
  if (!isMainThread || program === undefined) return undefined;
  return join(new URL(importUrl).searchParams.get("directory")!, program);
}

/** Returns the option that preloads `module`, which reads its file from `directory`. */
export function preload(module: string, directory: string): string {
  const url = pathToFileURL(module);
  url.searchParams.set("directory", directory);
  return `--import=${url.href}`;
}
