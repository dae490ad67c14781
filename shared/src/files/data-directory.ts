/** Finds the data directory, by one rule for router, agent, their commands and `npm start`. */
import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { StartError } from "./start-error.ts";

const project = join(import.meta.dirname, "../../..");

/** `configured`: the directory that the YAML file names, as an absolute path. */
export function dataDirectory(env: NodeJS.ProcessEnv, configured?: string): string {
  return resolve(env["WEICHE_DATA_DIR"] ?? configured ?? join(project, "data"));
}

/**
 * Makes a missing data directory, for this user only. Throws `StartError` if that fails or the directory is not
 * writable.
 */
export function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    accessSync(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StartError(
      `cannot write to the data directory ${directory}: ${reasonOf(error, directory)}; set WEICHE_DATA_DIR to use another one`,
    );
  }
}

/** Returns the real reason: on a read-only file system, Node.js reports ENOENT if several directories are missing. */
function reasonOf(error: unknown, directory: string): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ENOENT") return code;
  let missing = directory;
  while (!existsSync(dirname(missing))) missing = dirname(missing);
  try {
    mkdirSync(missing, { mode: 0o700 });
    return code;
  } catch (reason) {
    return (reason as NodeJS.ErrnoException).code;
  }
}
