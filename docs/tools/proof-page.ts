/** Makes a page of claims, each with the tests that prove it. A YAML file has the claims and the titles of tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { TestList, TestName } from "./test-list.ts";

/** A claim. `by`: titles of tests by their file. */
export interface Claim {
  readonly by: Readonly<Record<string, readonly string[] | null | undefined>>;
}
type Sections<C extends Claim> = Readonly<Record<string, readonly C[]>>;

export interface ProofPage {
  readonly page: string;
  /** Claims without a test, and tests that do not exist. */
  readonly mistakes: readonly string[];
}

export interface PageShape<C extends Claim> {
  head(claims: number): readonly string[];
  /** Names of the columns. The third is for tests. */
  readonly columns: readonly string[];
  cells(claim: C, position: string): readonly [name: string, claim: string, ...after: string[]];
}

export function readSections<C extends Claim>(file: string): Sections<C> {
  return parse(readFileSync(join(import.meta.dirname, file), "utf8")) as Sections<C>;
}

export function testsOf(sections: Sections<Claim>): TestName[] {
  return Object.values(sections)
    .flat()
    .flatMap(({ by }) => Object.entries(by))
    .flatMap(([file, titles]) => (titles ?? []).map((title) => ({ file, title })));
}

export function proofPage<C extends Claim>(sections: Sections<C>, tests: TestList, shape: PageShape<C>): ProofPage {
  const mistakes: string[] = [];
  const tables = Object.entries(sections).map(([heading, claims], section) => {
    const rows = claims.map((claim, index) => {
      const [name, text, ...after] = shape.cells(claim, `${section + 1}.${index + 1}`);
      const named = testsOf({ [heading]: [claim] });
      if (named.length === 0) mistakes.push(`no test proves: ${text}`);
      for (const test of named)
        if (!tests.has(test)) mistakes.push(`no test of this name in ${test.file}: ${test.title}`);
      const proofs = Object.entries(claim.by).map(
        ([file, titles]) => `[${file}](../${tests.pathOf(file) ?? ""}): ${(titles ?? []).map(shown).join("; ")}`,
      );
      return `| ${[name, cell(text), proofs.join("<br>"), ...after.map(cell)].join(" | ")} |`;
    });
    const rule = `|${shape.columns.map(() => "---").join("|")}|`;
    return [`## ${section + 1}. ${heading}`, "", `|${shape.columns.map(padded).join("|")}|`, rule, ...rows, ""].join(
      "\n",
    );
  });
  const count = Object.values(sections).flat().length;
  return { page: [...shape.head(count), "", ...tables].join("\n"), mistakes };
}

function shown(title: string): string {
  return title === "%s" ? "every row of its table" : cell(title.replaceAll(/%[sij]/g, "…"));
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("*", "\\*");
}

function padded(column: string): string {
  return column === "" ? " " : ` ${column} `;
}
