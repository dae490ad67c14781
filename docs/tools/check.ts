/**
 * `npm test`: types, lint, format, generated code, and every test without a cluster or a browser, in the order of what
 * fails fastest. With paths or `-t NAME` it runs those tests and nothing else. `--all` runs all tests, `--all --rest`
 * only those that `npm test` leaves out, `--nightly` the long campaigns. It prints what failed and which tests need a
 * program that this machine lacks. The last line is "N passed, N failed", and ", N skipped" if a test was skipped.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { countTests, type TestReport } from "./test-counts.ts";
import { filesWithTitle } from "./test-list.ts";

interface Step {
  readonly name: string;
  readonly run: () => boolean;
}

const root = join(import.meta.dirname, "../..");
const { values, positionals: paths } = parseArgs({
  options: {
    all: { type: "boolean" },
    rest: { type: "boolean" },
    nightly: { type: "boolean" },
    testNamePattern: { type: "string", short: "t" },
  },
  allowPositionals: true,
});
const { all = false, rest = false, nightly = false, testNamePattern } = values;
if (!nightly && (paths.length > 0 || testNamePattern !== undefined)) process.exit(runNamed(paths, testNamePattern));
/** Kinds of tests in `vitest.config.ts`. If empty, all kinds run. */
const kinds = rest ? ["e2e", "browser"] : all || nightly ? [] : ["unit", "process", "database"];
const work = mkdtempSync(join(tmpdir(), "weiche-check-"));
const counts = { passed: 0, failed: 0, skipped: 0 };
/** Number of skipped tests by the reason. */
let notRun: ReadonlyMap<string, number> = new Map();

const ofSources: readonly Step[] = [
  { name: "types and lint", run: () => command("oxlint") },
  { name: "format", run: () => command("oxfmt", "--check") },
  { name: "protocol lint", run: () => command("buf", "lint") },
  { name: "generated code fresh (npm run generate)", run: generatedIsFresh },
];
const steps = [...(rest ? [] : ofSources), { name: "tests", run: tests }];

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

/**
 * Runs the tests of files whose paths contain one of `paths`, or of all files. `title` selects tests by their title.
 */
function runNamed(paths: readonly string[], title: string | undefined): number {
  const files = title === undefined || paths.length > 0 ? paths : filesWithTitle(title);
  if (files.length === 0) {
    console.log(
      `No test in the sources has a title with "${title}". Rows of tables get theirs in a run: name the file, too.`,
    );
    return 1;
  }
  const filter = title === undefined ? [] : ["--testNamePattern", title];
  return command("vitest", "run", ...files, ...filter) ? 0 : 1;
}

function generatedIsFresh(): boolean {
  const fresh = join(work, "generated");
  return (
    command("buf", "generate", "-o", fresh) &&
    spawnSync("diff", ["-r", join(fresh, "proto/gen"), join(root, "proto/gen")], { stdio: "inherit" }).status === 0
  );
}

/** Runs Vitest. A test that is skipped without a reason counts as a failure. */
function tests(): boolean {
  const report = join(work, "tests.json");
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const asked = [...paths, ...kinds.map((kind) => `--project=${kind}`)];
  const args = [vitest, "run", ...asked, "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
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
