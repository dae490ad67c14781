/** Reads the kernel's files. Which files exist depends on hardware and drivers. Blocks. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Returns the text without white space at its ends, or "" if there is none. */
export function kernelText(...path: readonly string[]): string {
  try {
    return readFileSync(join(...path), "utf8").trim();
  } catch {
    return "";
  }
}

/** Returns the names in a folder, sorted, or none if the folder is missing. */
export function kernelNames(...path: readonly string[]): readonly string[] {
  try {
    return readdirSync(join(...path)).toSorted();
  } catch {
    return [];
  }
}
