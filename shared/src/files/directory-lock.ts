import { readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeDirectory } from "./data-directory.ts";
import { StartError } from "./start-error.ts";

/** SQLite result codes: SQLITE_BUSY; SQLITE_CORRUPT and SQLITE_NOTADB. */
const busy = 5;
const damaged: ReadonlySet<number | undefined> = new Set([11, 26]);

/**
 * Locks a data directory. The lock is an SQLite file held in an exclusive transaction: the kernel releases it when the
 * process dies, however it dies, and children do not inherit it. (Node has no file locks.) Throws `StartError`.
 */
export function lockDirectory(directory: string): Disposable {
  makeDirectory(directory);
  const file = join(directory, "lock");
  try {
    const lock = holdOrMend(file);
    return { [Symbol.dispose]: () => lock.close() };
  } catch (error) {
    const { errcode, message } = error as SqliteError;
    if (errcode === busy) throw new StartError(`another process${holderOf(file)} uses the data directory ${directory}`);
    throw new StartError(`cannot lock the data directory ${directory}: ${message}`);
  }
}

/** Returns the process that holds the lock, in brackets, from Linux's `/proc/locks`. */
function holderOf(file: string): string {
  try {
    const lock = new RegExp(`WRITE (\\d+) \\S+:${statSync(file).ino} `).exec(readFileSync("/proc/locks", "utf8"));
    return lock === null ? "" : ` (pid ${lock[1]})`;
  } catch {
    return "";
  }
}

type SqliteError = Error & { readonly errcode?: number };

/**
 * Empties a damaged lock file, which contains no data. The file is not replaced, because a second file would be a
 * second lock. Only a process that has locked the file sees the damage, so no other process holds it.
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
