/**
 * `npm test`: everything that must hold before a change lands, in the order of what fails fastest. Says in one line what
 * failed and ends with "N passed, N failed". `--nightly` runs the long campaigns instead of the quick tests.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Step {
  readonly name: string;
  readonly run: () => boolean;
}

const root = join(import.meta.dirname, "..");
const nightly = process.argv.includes("--nightly");
const work = mkdtempSync(join(tmpdir(), "weiche-check-"));
const counts = { passed: 0, failed: 0 };

const steps: readonly Step[] = [
  { name: "types", run: types },
  { name: "lint", run: () => command("oxlint") },
  { name: "format", run: () => command("oxfmt", "--check") },
  { name: "protocol lint", run: () => command("buf", "lint") },
  { name: "generated code fresh (npm run generate)", run: generatedIsFresh },
  { name: "tests", run: tests },
];

let failed: string | undefined;
for (const step of steps) {
  const startedMs = performance.now();
  const ok = step.run();
  console.log(`${ok ? "ok    " : "FAILED"} ${step.name} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`);
  if (step.name !== "tests") counts[ok ? "passed" : "failed"]++;
  if (!ok) failed ??= step.name;
}
rmSync(work, { recursive: true });
if (failed !== undefined) console.log(`failed: ${failed}`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = failed === undefined ? 0 : 1;

function command(program: string, ...args: string[]): boolean {
  return spawnSync(join(root, "node_modules", ".bin", program), args, { cwd: root, stdio: "inherit" }).status === 0;
}

/** Pages and their tests have configurations of their own: types of the browser, and of its driver. */
function types(): boolean {
  return command("tsc") && command("tsc", "-p", "router/portal-web") && command("tsc", "-p", "router/test/portal-web");
}

function generatedIsFresh(): boolean {
  const fresh = join(work, "generated");
  return (
    command("buf", "generate", "-o", fresh) &&
    command("buf", "build", "proto", "-o", join(fresh, "proto/gen/descriptors.binpb"), "--as-file-descriptor-set") &&
    spawnSync("diff", ["-r", join(fresh, "proto/gen"), join(root, "proto/gen")], { stdio: "inherit" }).status === 0
  );
}

/** Runs Vitest; a skipped test counts as a failure. */
function tests(): boolean {
  const report = join(work, "tests.json");
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const volume = nightly && { WEICHE_NIGHTLY: "1", WEICHE_CASES: "100000" };
  const env = { ...process.env, NO_COLOR: "1", ...volume };
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env });
  try {
    const told = JSON.parse(readFileSync(report, "utf8")) as Record<string, number>;
    const skipped = told["numPendingTests"]! + told["numTodoTests"]!;
    counts.passed += told["numPassedTests"]!;
    counts.failed += told["numFailedTests"]! + skipped;
    if (status !== 0 && counts.failed === 0) counts.failed = 1;
    return status === 0 && skipped === 0;
  } catch {
    counts.failed++;
    return false;
  }
}
