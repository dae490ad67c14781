/**
 * `npm test`: everything that must hold before a change lands, in the order of what fails fastest. Says in one line what
 * failed, in others which tests need what this machine lacks, and ends with "N passed, N failed", and ", N skipped" if there
 * are such tests. `--nightly` runs the long campaigns instead of the quick tests. Other arguments are parts of paths: of the
 * tests, those in such files alone are run.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { countTests, type TestReport } from "./test-counts.ts";

interface Step {
  readonly name: string;
  readonly run: () => boolean;
}

const root = join(import.meta.dirname, "..");
const { values, positionals: paths } = parseArgs({ options: { nightly: { type: "boolean" } }, allowPositionals: true });
const { nightly = false } = values;
const work = mkdtempSync(join(tmpdir(), "weiche-check-"));
const counts = { passed: 0, failed: 0, skipped: 0 };
/** Why tests were not run, and how many. */
let notRun: ReadonlyMap<string, number> = new Map();

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
for (const [reason, tests] of notRun) console.log(`${tests} not run: ${reason}`);
console.log(
  `${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ""}`,
);
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

/** Runs Vitest; a test that is skipped without a reason counts as a failure. */
function tests(): boolean {
  const report = join(work, "tests.json");
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", ...paths, "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const volume = nightly && { WEICHE_NIGHTLY: "1", WEICHE_CASES: "100000" };
  const env = { ...process.env, NO_COLOR: "1", ...volume };
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env });
  try {
    const told = countTests(JSON.parse(readFileSync(report, "utf8")) as TestReport);
    notRun = told.notRun;
    counts.passed += told.passed;
    counts.failed += told.failed;
    counts.skipped += told.notRun.values().reduce((sum, each) => sum + each, 0);
    if (status !== 0 && counts.failed === 0) counts.failed = 1;
    return status === 0 && told.failed === 0;
  } catch {
    counts.failed++;
    return false;
  }
}
