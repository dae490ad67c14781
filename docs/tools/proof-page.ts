/** Makes a page of claims, each with the tests whose titles name it. A YAML file has the claims. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import type { ClaimedTest } from "./claimed-tests.ts";

/** The claims of a page by their ids, below their headings. */
type Sections<C> = Readonly<Record<string, Readonly<Record<string, C>>>>;

export interface ProofPage {
  readonly page: string;
  /** Claims without a test. */
  readonly mistakes: readonly string[];
}

export interface PageShape<C> {
  head(claims: number): readonly string[];
  /** Names of the columns. The third is for tests. */
  readonly columns: readonly string[];
  cells(claim: C): readonly [claim: string, ...after: string[]];
}

/** The end of a test file's name: its kind, if it is neither pure nor nightly, and `.test.ts`. */
const kindOfTest = /(\.(database|process|e2e|browser))?(\.test)?\.tsx?$/;

export function readSections<C>(file: string): Sections<C> {
  return parse(readFileSync(join(import.meta.dirname, file), "utf8")) as Sections<C>;
}

export function idsOf(sections: Sections<unknown>): readonly string[] {
  return Object.values(sections).flatMap((claims) => Object.keys(claims));
}

export function proofPage<C>(sections: Sections<C>, tests: readonly ClaimedTest[], shape: PageShape<C>): ProofPage {
  const ids = idsOf(sections);
  const proven = new Set(tests.flatMap((test) => test.ids));
  const mistakes = ids.filter((id) => !proven.has(id)).map((id) => `no title of a test ends with [${id}]`);
  const columns = shape.columns.map((column) => (column === "" ? " " : ` ${column} `));
  const tables = Object.entries(sections).map(([heading, claims], section) => {
    const rows = Object.entries(claims).map(([id, claim]) => {
      const [text, ...after] = shape.cells(claim);
      const cells = [id, cell(text), proofs(tests.filter((test) => test.ids.includes(id))), ...after.map(cell)];
      return `| ${cells.join(" | ")} |`;
    });
    const rule = `|${columns.map(() => "---").join("|")}|`;
    return [`## ${section + 1}. ${heading}`, "", `|${columns.join("|")}|`, rule, ...rows, ""].join("\n");
  });
  return { page: [...shape.head(ids.length), "", ...tables].join("\n"), mistakes };
}

function proofs(tests: readonly ClaimedTest[]): string {
  const byFile = Map.groupBy(tests, ({ file }) => file);
  const ofFiles = [...byFile].map(([file, ofFile]) => {
    const titles = new Set(ofFile.map(({ title }) => (title === "…" ? "every row of its table" : cell(title))));
    return `[${basename(file).replace(kindOfTest, "")}](../${file}): ${[...titles].join("; ")}`;
  });
  return ofFiles.join("<br>");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("*", "\\*");
}
