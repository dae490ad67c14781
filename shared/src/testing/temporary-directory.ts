import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Makes an empty directory for the current or next test. It is removed after the test and its hooks. */
export function temporaryDirectory(): string {
  const made = mkdtempDisposableSync(join(tmpdir(), "weiche-"));
  onTestFinished(() => made.remove());
  return made.path;
}
