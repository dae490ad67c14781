import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, rmSync, statSync } from "node:fs";

/** A reason why a program cannot start. It is printed as one line, and the exit code is 1. */
export class StartError extends Error {}

/** Reads a file. Throws a `StartError` that names it. */
export function readForStart(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Throws a `StartError` if the file cannot be read, before work that reads it late. Opens no pipe. */
export function requireReadable(file: string): void {
  try {
    accessSync(file, constants.R_OK);
    if (statSync(file).isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Throws a `StartError` if the file cannot be written, before work whose result it gets. Leaves nothing behind. */
export function requireWritable(file: string): void {
  const existed = existsSync(file);
  try {
    closeSync(openSync(file, "a"));
    if (!existed) rmSync(file);
  } catch (error) {
    throw unwritable(file, error);
  }
}

export function unreadable(file: string, error: unknown): StartError {
  return new StartError(`cannot read ${file}: ${readFault(error)}`);
}

/** Why a file cannot be read, and what to do. */
export function readFault(error: unknown): string {
  return explained(error, readAdvice);
}

export function unwritable(file: string, error: unknown): StartError {
  return new StartError(`cannot write ${file}: ${explained(error, writeAdvice)}`);
}

type Advice = Readonly<Record<string, string>>;

const readAdvice: Advice = {
  ENOENT: "it does not exist (ENOENT). Check the path",
  ENOTDIR: "a part of its path is a file (ENOTDIR). Check the path",
  EISDIR: "it is a folder (EISDIR). Name a file",
  EACCES: "permission denied (EACCES). Run this as a user who may read it",
  ERR_FS_FILE_TOO_LARGE: "it is larger than 2 GiB. Check that it is the right file",
};

const writeAdvice: Advice = {
  ENOENT: "its folder does not exist (ENOENT). Make the folder first",
  ENOTDIR: "a part of its path is a file (ENOTDIR). Check the path",
  EISDIR: "it is a folder (EISDIR). Name a file",
  EEXIST: "it is a file (EEXIST). Name a folder",
  EACCES: "permission denied (EACCES). Name another file, or run this as a user who may write it",
  EROFS: "the file system is read-only (EROFS). Name a file elsewhere",
  ENOSPC: "the disk is full (ENOSPC). Free some space, or name a file elsewhere",
};

function explained(error: unknown, advice: Advice): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : (advice[code] ?? code);
}
