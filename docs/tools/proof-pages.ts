/**
 * Makes conformance.md (every rule of the service) and promises.md (every promise to operators), each claim with the
 * tests that prove it. The claims are in conformance.yaml and promises.yaml. `node docs/tools/proof-pages.ts` writes both
 * pages.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { proofPage, readSections, testsOf, type Claim, type PageShape, type ProofPage } from "./proof-page.ts";
import { listTests, type TestList, type TestName } from "./test-list.ts";

interface Rule extends Claim {
  readonly rule: string;
}

/** `quick`, `nightly`: how much of it `npm run test:all` and `npm run nightly` try. */
interface Promised extends Claim {
  readonly id: string;
  readonly promise: string;
  readonly quick: string;
  readonly nightly: string;
}

export const conformanceShape: PageShape<Rule> = {
  head: (count) => [
    "# Conformance",
    "",
    `${count} rules of the service that its API keeps, each with the tests that prove it: a test runs before every change lands,`,
    "and this page is made from their names (`node docs/tools/proof-pages.ts`). `…` in a name stands for each row of a table.",
    "The page covers neither the actions of people in the portal nor the service's advice to clients.",
  ],
  columns: ["", "rule", "proven by"],
  cells: ({ rule }, position) => [position, rule],
};

export const promisesShape: PageShape<Promised> = {
  head: (count) => [
    "# Promises",
    "",
    `${count} promises to whoever runs Weiche, each with the tests that prove it and how much of it they try: \`npm run test:all\` before`,
    "every change, `npm run nightly` by night, which runs all tests and besides them those in files named `….nightly`. This page",
    "is made from the names of tests (`node docs/tools/proof-pages.ts`); `…` in a name stands for each row of a table.",
  ],
  columns: ["", "promise", "proven by", "in `npm run test:all`", "in `npm run nightly`"],
  cells: ({ id, promise, quick, nightly }) => [id, promise, quick, nightly],
};

/** The two pages by their files, and the list of tests in which they looked up theirs. */
export interface ProofPages {
  readonly pages: ReadonlyMap<string, ProofPage>;
  readonly tests: TestList;
}

/** Makes the two pages. `others`: further tests to look up later. */
export function proofPages(others: readonly TestName[] = []): ProofPages {
  const rules = readSections<Rule>("conformance.yaml");
  const promises = readSections<Promised>("promises.yaml");
  const tests = listTests([...testsOf(rules), ...testsOf(promises), ...others]);
  const pages = new Map([
    [join(import.meta.dirname, "../conformance.md"), proofPage(rules, tests, conformanceShape)],
    [join(import.meta.dirname, "../promises.md"), proofPage(promises, tests, promisesShape)],
  ]);
  return { pages, tests };
}

if (import.meta.main) {
  for (const [file, { page, mistakes }] of proofPages().pages) {
    for (const mistake of mistakes) console.error(mistake);
    if (mistakes.length > 0) process.exitCode = 1;
    else writeFileSync(file, page);
  }
}
