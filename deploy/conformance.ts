/**
 * Makes CONFORMANCE.md: every rule of the service, with the tests that prove it. The rules are in conformance.yaml, each
 * with tests by name; names are looked up in the sources, so that a rule whose test is gone is noticed without running any.
 * `node deploy/conformance.ts` writes the page.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";

/** `by`: names of tests by the file that they stand in, without its folder and its ending. */
interface Rule {
  readonly rule: string;
  readonly by: Readonly<Record<string, readonly string[] | undefined>>;
}
type Rules = Readonly<Record<string, readonly Rule[]>>;

export interface Conformance {
  readonly page: string;
  /** Rules without a test, tests that are not there. */
  readonly mistakes: readonly string[];
}

const root = join(import.meta.dirname, "..");
export const pageFile = join(import.meta.dirname, "CONFORMANCE.md");

export function conformance(rules: Rules = readRules(), files = testFiles()): Conformance {
  const mistakes: string[] = [];
  const names = new Map<string, TestNames>();
  const find = (file: string): TestNames | undefined => {
    const path = files.get(file);
    if (path === undefined) return undefined;
    if (!names.has(file)) names.set(file, readNames(readFileSync(join(root, path), "utf8")));
    return names.get(file);
  };
  const sections = Object.entries(rules).map(([heading, list], section) => {
    const rows = list.map(({ rule, by }, index) => {
      const proofs = Object.entries(by).map(([file, tests = []]) => {
        const missing = tests.filter((test) => !isNameOf(test, find(file)));
        mistakes.push(...missing.map((test) => `no test of this name in ${file}: ${test}`));
        return `[${file}](../${files.get(file) ?? ""}): ${tests.map(shown).join("; ")}`;
      });
      if (Object.values(by).flat().length === 0) mistakes.push(`no test proves: ${rule}`);
      return `| ${section + 1}.${index + 1} | ${cell(rule)} | ${proofs.join("<br>")} |`;
    });
    return [`## ${section + 1}. ${heading}`, "", "| | rule | proven by |", "|---|---|---|", ...rows, ""].join("\n");
  });
  const count = Object.values(rules).flat().length;
  return { page: [head(count), ...sections].join("\n"), mistakes };
}

function head(count: number): string {
  return [
    "# Conformance",
    "",
    `${count} rules of the service that its API keeps, each with the tests that prove it: a test runs before every change lands,`,
    "and this page is made from their names (`node deploy/conformance.ts`). `…` in a name stands for each row of a table.",
    "What people do in the portal is not on it, and neither is what the service tells its clients to do.",
    "",
  ].join("\n");
}

function shown(test: string): string {
  return test === "%s" ? "every row of its table" : cell(test.replaceAll(/%[sij]/g, "…"));
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("*", "\\*");
}

interface TestNames {
  readonly titles: readonly string[];
  /** First words of the rows of tables. */
  readonly rows: ReadonlySet<string>;
}

const text = String.raw`("(?:[^"\\]|\\.)*"|\`[^\`]*\`)`;
const titlePattern = new RegExp(String.raw`\(\s*${text},\s*(?:\{[^}]*\},\s*)?(?:async\s*)?\(`, "g");
const rowPattern = new RegExp(String.raw`\[\s*${text}`, "g");

function readNames(source: string): TestNames {
  const found = (pattern: RegExp) => [...source.matchAll(pattern)].map(([, literal]) => nameOf(literal!));
  return { titles: found(titlePattern), rows: new Set(found(rowPattern)) };
}

/** What a name is made of at run time is left open. */
function nameOf(literal: string): string {
  if (literal.startsWith('"')) return JSON.parse(literal) as string;
  return literal.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, "…");
}

/** A title, or a title whose first placeholder is filled by a row. */
function isNameOf(test: string, names: TestNames | undefined): boolean {
  if (!names) return false;
  if (names.titles.includes(test)) return true;
  return names.titles.some((title) => {
    const [before, after] = title.split("%s", 2);
    if (after === undefined || !test.startsWith(before!) || !test.endsWith(after)) return false;
    return names.rows.has(test.slice(before!.length, test.length - after.length));
  });
}

function readRules(): Rules {
  return parse(readFileSync(join(import.meta.dirname, "conformance.yaml"), "utf8")) as Rules;
}

/** Files of tests and those that they are made of, by their short names. */
function testFiles(): ReadonlyMap<string, string> {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root });
  const paths = listed
    .toString()
    .split("\n")
    .filter((path) => /(\.test\.ts|\/test\/[^/]+\.ts)$/.test(path) && existsSync(join(root, path)));
  return new Map(paths.map((path) => [basename(path).replace(/(\.test)?\.ts$/, ""), path]));
}

if (import.meta.main) {
  const { page, mistakes } = conformance();
  for (const mistake of mistakes) console.error(mistake);
  if (mistakes.length > 0) process.exitCode = 1;
  else writeFileSync(pageFile, page);
}
