/** Pages stay readable: short paragraphs, short cells, and lists of at most eight files for each kind of change. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { pages as all } from "./page-list.ts";

const root = join(import.meta.dirname, "../..");
const generated = ["docs/conformance.md", "docs/promises.md"];
/** Decisions, the changelog, measurements and notices are records. The frames' page is a specification. */
const records =
  /^(CHANGELOG\.md|docs\/decisions\/|benchmarks\/results\/|e2e\/real-engines\/|node-agent\/models\/|e2e\/sim\/|shared\/src\/frames\/|deploy\/release\/|\.)/;
const pages = all.filter((page) => !records.test(page) && !generated.includes(page));

/** The parts of a page that are read as one: paragraphs, items of lists, and cells of tables. Code is left out. */
function partsOf(page: string): { readonly paragraphs: readonly string[]; readonly cells: readonly string[] } {
  const text = readFileSync(join(root, page), "utf8")
    .replaceAll(/^```.*?^```$/gms, "")
    .replaceAll(/^(#|<!--).*$/gm, "")
    .replaceAll(/^\s*([-*]|\d+\.) /gm, "\n$&");
  const chunks = text.split(/\n\s*\n/).map((chunk) => chunk.trim());
  const tables = chunks.filter((chunk) => chunk.startsWith("|"));
  return {
    paragraphs: chunks.filter((chunk) => chunk !== "" && !chunk.startsWith("|")),
    cells: tables.flatMap((table) => table.split("\n").flatMap((row) => row.split(/(?<!\\)\|/).slice(1, -1))),
  };
}

/** Counts words. The address of a link does not count as a word. */
function wordsOf(text: string): number {
  return text
    .replaceAll(/\]\([^)]*\)/g, "]")
    .trim()
    .split(/\s+/).length;
}

/** Counts the words of a cell that are no code. */
function proseOf(cell: string): number {
  return wordsOf(cell.replaceAll(/`[^`]*`|→/g, ""));
}

describe.each(pages)("%s", (page) => {
  const { paragraphs, cells } = partsOf(page);

  test("has paragraphs of at most 25 words at the median, and of at most 60 at the ninth decile", () => {
    const lengths = paragraphs.map(wordsOf).toSorted((a, b) => a - b);
    const at = (share: number) => lengths[Math.floor(lengths.length * share)] ?? 0;
    expect([at(0.5), at(0.9)].map((words, index) => words <= [25, 60][index]! || words)).toEqual([true, true]);
  });

  test("has no table cell longer than a line", () => {
    expect(cells.filter((cell) => proseOf(cell) > 20)).toEqual([]);
  });
});

test("the check finds long paragraphs and cells on pages that are exempt", () => {
  const { paragraphs, cells } = partsOf("docs/promises.md");
  expect(paragraphs.some((text) => wordsOf(text) > 60)).toBe(true);
  expect(cells.some((text) => proseOf(text) > 20)).toBe(true);
});

describe("the pages for each kind of change", () => {
  const folder = join(root, "docs/contributors");
  const changes = readdirSync(folder).filter((name) => name !== "README.md");
  const linesOf = (name: string) => readFileSync(join(folder, name), "utf8").match(/^\d+\. .*$/gm) ?? [];

  test.each(changes)("%s lists at most eight files, one a line, and they exist with what is named in them", (name) => {
    const lines = linesOf(name);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(8);
    const wrong = lines.filter((line) => {
      const [, path, word] = /^\d+\. \[`[^`]+`\]\(([^)]+)\)(?: `(#?\w+)`)?/.exec(line) ?? [];
      if (path === undefined || !existsSync(resolve(folder, path))) return true;
      if (word === undefined) return false;
      return !new RegExp(`(?<!\\w)${word}\\b`).test(readFileSync(resolve(folder, path), "utf8"));
    });
    expect(wrong).toEqual([]);
  });

  test("the index names each of them", () => {
    const index = readFileSync(join(folder, "README.md"), "utf8");
    expect(changes.filter((name) => !index.includes(`](${name})`))).toEqual([]);
  });
});
