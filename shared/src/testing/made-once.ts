import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";

/**
 * Makes a folder that all test files of a machine share, if nobody has made it yet. `make` fills another folder, which is
 * renamed at the end: no test meets half of it.
 */
export async function madeOnce(directory: string, make: (fresh: string) => Promise<void>): Promise<string> {
  if (existsSync(directory)) return directory;
  const fresh = mkdtempSync(`${directory}-`);
  await make(fresh);
  try {
    renameSync(fresh, directory);
  } catch {
    rmSync(fresh, { recursive: true }); // somebody else was faster
  }
  return directory;
}
