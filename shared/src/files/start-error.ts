import { readFileSync } from "node:fs";

/** A reason why a program cannot start. It is printed as one line, and the exit code is 1. */
export class StartError extends Error {}

/** Reads a file. Throws a `StartError` that names it. */
export function readForStart(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new StartError(`cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
}
