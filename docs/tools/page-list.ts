/** The pages of the repository. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** All pages that Git knows, as paths from the root. A new page counts once it is added. */
export const pages: readonly string[] = execFileSync("git", ["ls-files", "*.md"], {
  cwd: join(import.meta.dirname, "../.."),
  encoding: "utf8",
})
  .trim()
  .split("\n");
