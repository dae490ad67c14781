/**
 * `npm test`: types, lint, format, generated code, and every test without a cluster or a browser. The checks of the
 * sources and the unit tests run beside the other tests, which wait for processes half of their time. With paths or
 * `-t NAME` it runs those tests and nothing else. `--all` runs all tests, `--all --rest` only those that `npm test`
 * leaves out, `--nightly` the long campaigns. It prints what failed and which tests need a program that this machine
 * lacks. The last line is "N passed, N failed", and ", N skipped" if a test was skipped.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { countTests, type TestReport } from "./test-counts.ts";
import { filesWithTitle } from "./test-list.ts";

interface Step {
  readonly name: string;
  readonly run: () => Promise<boolean>;
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
const work = mkdtempSync(join(tmpdir(), "weiche-check-"));
const counts = { passed: 0, failed: 0, skipped: 0 };
/** Number of skipped tests by the reason. */
const notRun = new Map<string, number>();
let failed: string | undefined;

const ofSources: readonly Step[] = [
  { name: "types and lint", run: () => quiet("oxlint") },
  { name: "format", run: () => quiet("oxfmt", "--check") },
  { name: "protocol lint", run: () => quiet("buf", "lint") },
  { name: "generated code fresh (npm run generate)", run: generatedIsFresh },
];
/** The kinds of `vitest.config.ts` other than `unit`. */
const others = [...(rest ? [] : ["process", "database"]), ...(all || rest ? ["e2e", "browser"] : [])];
const unitWorkers = Math.ceil(availableParallelism() / 2);
if (nightly) {
  await runSteps(ofSources);
  await runSteps([{ name: "tests", run: () => tests() }]);
} else {
  const unit = { name: "unit tests", run: () => tests(["--project=unit", `--maxWorkers=${unitWorkers}`], false) };
  const besides = rest ? [] : runSteps([...ofSources, unit]);
  const main = runSteps([{ name: "tests", run: () => tests(others.map((kind) => `--project=${kind}`)) }]);
  await Promise.all([besides, main]);
}
rmSync(work, { recursive: true });
if (failed !== undefined) console.log(`failed: ${failed}`);
for (const [reason, tests] of notRun) console.log(`${tests} not run: ${reason}`);
console.log(
  `${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ""}`,
);
process.exitCode = failed === undefined ? 0 : 1;

async function runSteps(steps: readonly Step[]): Promise<void> {
  for (const { name, run } of steps) {
    const startedMs = performance.now();
    const ok = await run();
    console.log(`${ok ? "ok    " : "FAILED"} ${name} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`);
    if (ofSources.some((step) => step.name === name)) counts[ok ? "passed" : "failed"]++;
    if (!ok) failed ??= name;
  }
}

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

async function generatedIsFresh(): Promise<boolean> {
  const fresh = join(work, "generated");
  if (!(await quiet("buf", "generate", "-o", fresh))) return false;
  return (
    spawnSync("diff", ["-r", join(fresh, "proto/gen"), join(root, "proto/gen")], { stdio: "inherit" }).status === 0
  );
}

/** Runs a program of the project, and prints its output only if it fails. */
function quiet(program: string, ...args: string[]): Promise<boolean> {
  return runQuietly(join(root, "node_modules", ".bin", program), args);
}

async function runQuietly(file: string, args: readonly string[], env = process.env): Promise<boolean> {
  const child = spawn(file, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  if (code !== 0) console.log(output + errors);
  return code === 0;
}

/** Runs Vitest. A test that is skipped without a reason counts as a failure. */
async function tests(projects: readonly string[] = [], prints = true): Promise<boolean> {
  const report = join(work, `tests-${projects[0] ?? "all"}.json`);
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", ...paths, ...projects];
  args.push("--reporter=default", "--reporter=json", `--outputFile.json=${report}`);
  const volume = nightly && { WEICHE_NIGHTLY: "1", WEICHE_CASES: "100000" };
  const env = { ...process.env, NO_COLOR: "1", ...volume };
  const ok = await (prints ? runAloud(args, env) : runQuietly(process.execPath, args, env));
  try {
    const counted = countTests(JSON.parse(readFileSync(report, "utf8")) as TestReport);
    for (const [reason, tests] of counted.notRun) {
      notRun.set(reason, (notRun.get(reason) ?? 0) + tests);
      counts.skipped += tests;
    }
    counts.passed += counted.passed;
    counts.failed += counted.failed;
    if (!ok && counted.failed === 0) counts.failed++;
    return ok && counted.failed === 0;
  } catch {
    counts.failed++;
    return false;
  }
}

/** Runs Node.js and prints its output line by line, because results of other checks come in between. */
async function runAloud(args: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.pipe(process.stdout, { end: false });
  const [code] = (await once(child, "close")) as [number | null];
  return code === 0;
}
