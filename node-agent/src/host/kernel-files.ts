/** Reads the kernel's files, which are there or not by the host's hardware and drivers. Blocks. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** The text without blanks at its ends; "" if there is none. */
export function kernelText(...path: readonly string[]): string {
  try {
    return readFileSync(join(...path), "utf8").trim();
  } catch {
    return "";
  }
}

/** The names in a folder, sorted; none if it is not there. */
export function kernelNames(...path: readonly string[]): readonly string[] {
  try {
    return readdirSync(join(...path)).toSorted();
  } catch {
    return [];
  }
}
