/** Finds tests by their titles, which the test runner reads from the sources. No test runs. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Returns the files with a test whose title matches the regular expression. */
export function filesWithTitle(pattern: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "weiche-tests-"));
  try {
    const json = join(folder, "tests.json");
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const env = { ...withoutRunner(process.env), WEICHE_NIGHTLY: "1" };
    const command = [vitest, "list", "--testNamePattern", pattern, `--json=${json}`];
    const { status, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: "utf8", env });
    if (status !== 0) throw new Error(`the tests cannot be listed: ${stderr}`);
    const tests = JSON.parse(readFileSync(json, "utf8")) as readonly { readonly file: string }[];
    return [...new Set(tests.map(({ file }) => relative(root, file)))];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Removes the runner's variables. With them, a runner that a test starts would act as a worker. */
function withoutRunner(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("VITEST")));
}
