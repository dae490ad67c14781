/** How `npm test` counts a run with a test that lacks a program, a skipped test and a passing one. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { countTests, type TestCounts, type TestReport } from "./test-counts.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "weiche-counts-"));
afterAll(() => rmSync(folder, { recursive: true }));

const tests = `
import { describe, test } from "vitest";
import { needs, notRun } from "${join(root, "shared/src/testing/needs.ts")}";
test("passes", () => {});
test("lacks", notRun("a compiler is missing"), () => { throw new Error("it ran"); });
describe("a group", needs("promtool"), () => {
  test.each([1, 2])("lacks %s", () => { throw new Error("it ran"); });
});
test.skip("is skipped", () => {});
test.todo("is to be written");
`;

function counted(env: NodeJS.ProcessEnv): TestCounts {
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "some.test.ts"), tests);
  const report = join(folder, "report.json");
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = [vitest, "run", "--root", folder, "--reporter=json", `--outputFile=${report}`];
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST") && name !== "CI");
  // Without a PATH, no program is found.
  spawnSync(process.execPath, args, { env: { ...Object.fromEntries(own), PATH: folder, ...env }, cwd: folder });
  rmSync(join(folder, "node_modules"));
  return countTests(JSON.parse(readFileSync(report, "utf8")) as TestReport);
}

test("tests that lack a program are counted by the reason, and tests skipped without a reason as failed", () => {
  const prometheus = "promtool is missing; as root: apt-get install -y --no-install-recommends prometheus";
  expect(counted({})).toEqual({
    passed: 1,
    failed: 2,
    notRun: new Map([
      ["a compiler is missing", 1],
      [prometheus, 2],
    ]),
  });
});

test("in CI every test runs, and fails without its program", () => {
  expect(counted({ CI: "true" })).toEqual({ passed: 1, failed: 5, notRun: new Map() });
});
