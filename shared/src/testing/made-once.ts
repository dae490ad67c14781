import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";

/**
 * Makes a folder that all test files of a machine share, if it does not exist. `make` fills another folder, which is
 * renamed at the end, so that no test sees an incomplete folder.
 */
export async function madeOnce(directory: string, make: (fresh: string) => Promise<void>): Promise<string> {
  if (existsSync(directory)) return directory;
  const fresh = mkdtempSync(`${directory}-`);
  await make(fresh);
  try {
    renameSync(fresh, directory);
  } catch {
    rmSync(fresh, { recursive: true }); // another process was faster
  }
  return directory;
}
