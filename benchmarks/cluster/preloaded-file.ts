/**
 * For modules that are loaded before every program of a cluster (`NODE_OPTIONS=--import=URL?directory=PATH`): the file of
 * the directory by which a test steers this program, `router` or `node-agent`. Undefined in other programs and in threads.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread } from "node:worker_threads";

export function fileOfProgram(importUrl: string): string | undefined {
  const [, program] = /(router|node-agent)\/src\/main\.ts$/.exec(process.argv[1] ?? "") ?? [];
  if (!isMainThread || program === undefined) return undefined;
  return join(new URL(importUrl).searchParams.get("directory")!, program);
}

/** The option that loads `module` before a program and steers it by files of `directory`. */
export function preload(module: string, directory: string): string {
  const url = pathToFileURL(module);
  url.searchParams.set("directory", directory);
  return `--import=${url.href}`;
}
