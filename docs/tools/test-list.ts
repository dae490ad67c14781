/**
 * Lists all tests without running any. The test runner reads the titles from the sources, which takes two seconds.
 * Titles of table rows are not in the sources, so files with requested rows are also loaded.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

/** A test file, by the end of its path without its kind and `.test.ts`, such as `kills` or `intake/chat-request`. */
export interface TestName {
  readonly file: string;
  readonly title: string;
}

export interface TestList {
  /** Returns the path relative to the project, or undefined for no file or several. */
  pathOf(file: string): string | undefined;
  /** Returns whether the test exists, by its title or with its blocks (`block > title`). `…` matches any text. */
  has(test: TestName): boolean;
}

interface Listed {
  readonly name: string;
  readonly file: string;
}

/** The end of a test file's name: its kind, if it is none of the pure ones, and `.test.ts`. */
const kindOfTest = /(\.(database|process|e2e|browser))?\.test\.ts$/;

const root = join(import.meta.dirname, "../..");

/** Lists tests. `names`: the tests that later calls look up. */
export function listTests(names: readonly TestName[]): TestList {
  const titles = new Map<string, Set<string>>();
  add(listed(["list"]));
  const withRows = new Set(names.filter((test) => !has(test)).flatMap(({ file }) => pathOf(file) ?? []));
  if (withRows.size > 0) add(listed(["list", "--no-static-parse", ...withRows]));
  return { pathOf, has };

  function add(tests: readonly Listed[]): void {
    for (const { name, file } of tests) {
      const path = relative(root, file);
      const ofFile = titles.get(path) ?? new Set();
      titles.set(path, ofFile);
      const parts = name.replaceAll(/\$\{[^}]*\}/g, "…").split(" > ");
      for (const index of parts.keys()) ofFile.add(parts.slice(index).join(" > "));
    }
  }

  function pathOf(file: string): string | undefined {
    const [path, ...others] = [...titles.keys()].filter((one) =>
      `/${one.replace(kindOfTest, "")}`.endsWith(`/${file}`),
    );
    return others.length === 0 ? path : undefined;
  }

  function has({ file, title }: TestName): boolean {
    const path = pathOf(file);
    if (path === undefined) return false;
    const ofFile = titles.get(path)!;
    if (ofFile.has(title) || !title.includes("…")) return ofFile.has(title);
    const parts = title.split("…").map((part) => RegExp.escape(part));
    const pattern = new RegExp(`^${parts.join(".+")}$`, "s");
    return [...ofFile].some((one) => pattern.test(one));
  }
}

/** Returns the files with a test whose title matches the regular expression. */
export function filesWithTitle(pattern: string): readonly string[] {
  return [...new Set(listed(["list", "--testNamePattern", pattern]).map(({ file }) => relative(root, file)))];
}

function listed(args: readonly string[]): readonly Listed[] {
  const folder = mkdtempSync(join(tmpdir(), "weiche-tests-"));
  try {
    const file = join(folder, "tests.json");
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const env = { ...withoutRunner(process.env), WEICHE_NIGHTLY: "1" };
    const command = [vitest, ...args, `--json=${file}`];
    const { status, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: "utf8", env });
    if (status !== 0) throw new Error(`the tests cannot be listed: ${stderr}`);
    return JSON.parse(readFileSync(file, "utf8")) as Listed[];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Removes the runner's variables. With them, a runner that a test starts would act as a worker. */
function withoutRunner(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("VITEST")));
}
