/**
 * Makes conformance.md (every rule of the service) and promises.md (every promise to operators), each claim with the
 * tests that prove it. The claims are in conformance.yaml and promises.yaml, and titles of tests end with their ids.
 * `node docs/tools/proof-pages.ts` writes both pages.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { claimedTests } from "./claimed-tests.ts";
import { idsOf, proofPage, readSections, type PageShape, type ProofPage } from "./proof-page.ts";

/** `quick`, `nightly`: how much of it `npm run test:all` and `npm run nightly` try. */
interface Promised {
  readonly promise: string;
  readonly quick: string;
  readonly nightly: string;
}

export const conformanceShape: PageShape<string> = {
  head: (count) => [
    "# Conformance",
    "",
    `${count} rules of the service that its API keeps, each with the tests that prove it: a test runs before every change lands.`,
    "Titles of tests end with the ids of rules, and `node docs/tools/proof-pages.ts` makes this page from them. `…` stands for",
    "each row of a table. `npm test -- -t '\\bS1.1\\b'` runs the tests of a rule.",
    "The page covers neither the actions of people in the portal nor the service's advice to clients.",
  ],
  columns: ["", "rule", "proven by"],
  cells: (rule) => [rule],
};

export const promisesShape: PageShape<Promised> = {
  head: (count) => [
    "# Promises",
    "",
    `${count} promises to whoever runs Weiche, each with the tests that prove it and how much of it they try: \`npm run test:all\` before`,
    "every change, `npm run nightly` by night, which runs all tests and besides them those in files named `….nightly`. The titles",
    "of tests end with the ids of promises, and `node docs/tools/proof-pages.ts` makes this page from them. `…` stands for each",
    "row of a table. `npm test -- -t '\\bA1\\b'` runs the tests of a promise.",
  ],
  columns: ["", "promise", "proven by", "in `npm run test:all`", "in `npm run nightly`"],
  cells: ({ promise, quick, nightly }) => [promise, quick, nightly],
};

/** The two pages by their files. */
interface ProofPages {
  readonly pages: ReadonlyMap<string, ProofPage>;
  /** Titles of tests with unknown ids, and texts with ids that are no titles. */
  readonly mistakes: readonly string[];
}

export function proofPages({ tests, mistakes } = claimedTests()): ProofPages {
  const rules = readSections<string>("conformance.yaml");
  const promises = readSections<Promised>("promises.yaml");
  const known = new Set([...idsOf(rules), ...idsOf(promises)]);
  const unknown = tests.flatMap(({ file, ids }) => ids.filter((id) => !known.has(id)).map((id) => `${file}: [${id}]`));
  const pages = new Map([
    [join(import.meta.dirname, "../conformance.md"), proofPage(rules, tests, conformanceShape)],
    [join(import.meta.dirname, "../promises.md"), proofPage(promises, tests, promisesShape)],
  ]);
  return { pages, mistakes: [...mistakes, ...unknown.map((place) => `no claim has the id of a title in ${place}`)] };
}

if (import.meta.main) {
  const { pages, mistakes } = proofPages();
  const all = [...mistakes, ...[...pages.values()].flatMap((page) => page.mistakes)];
  for (const mistake of all) console.error(mistake);
  if (all.length > 0) process.exitCode = 1;
  else for (const [file, { page }] of pages) writeFileSync(file, page);
}
