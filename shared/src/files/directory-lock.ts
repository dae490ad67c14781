import { mkdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Results of SQLite. */
const busy = 5;
const damaged: ReadonlySet<number | undefined> = new Set([11, 26]);

/**
 * One process per data directory. The lock is an SQLite file held in an exclusive transaction: the kernel releases it
 * when the process dies, however it dies, and children do not inherit it. (Node itself has no file locks.)
 */
export function lockDirectory(directory: string): Disposable {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const lock = holdOrMend(join(directory, "lock"));
    return { [Symbol.dispose]: () => lock.close() };
  } catch (error) {
    const { errcode, message } = error as SqliteError;
    if (errcode === busy) throw new StartError(`another process uses the data directory ${directory}`);
    throw new StartError(`cannot lock the data directory ${directory}: ${message}`);
  }
}

type SqliteError = Error & { readonly errcode?: number };

/**
 * Nothing is kept in the file, so that a damaged one is emptied: not replaced, since the locks of two files are two. Its
 * damage is seen only by a process that could lock it, so that nobody holds it then.
 */
function holdOrMend(file: string): DatabaseSync {
  try {
    return hold(file);
  } catch (error) {
    if (!damaged.has((error as SqliteError).errcode)) throw error;
    truncateSync(file);
    return hold(file);
  }
}

function hold(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A reason not to start: printed as one line, exit code 1. */
export class StartError extends Error {}
