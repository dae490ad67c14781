import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/**
 * One process per data directory. The lock is an SQLite file held in an exclusive transaction: the kernel releases it
 * when the process dies, however it dies, and children do not inherit it. (Node itself has no file locks.)
 */
export function lockDirectory(directory: string): Disposable {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = new DatabaseSync(join(directory, "lock"), { timeout: 0 });
  try {
    file.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch {
    file.close();
    throw new StartError(`another process uses the data directory ${directory}`);
  }
  return { [Symbol.dispose]: () => file.close() };
}

/** A reason not to start: printed as one line, exit code 1. */
export class StartError extends Error {}
