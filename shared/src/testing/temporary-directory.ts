import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Makes an empty directory for the test that runs or is about to run; it is removed after the test and its hooks. */
export function temporaryDirectory(): string {
  const made = mkdtempDisposableSync(join(tmpdir(), "weiche-"));
  onTestFinished(() => made.remove());
  return made.path;
}
