/** The pages of proofs are fresh, and every claim has a test. */
import { expect, test } from "vitest";
import { claimedIn } from "./claimed-tests.ts";
import { conformanceShape, promisesShape, proofPages } from "./proof-pages.ts";
import { proofPage } from "./proof-page.ts";

test("every rule and every promise has a test, and the pages are fresh (node docs/tools/proof-pages.ts)", async () => {
  const { pages, mistakes } = proofPages();
  expect(mistakes).toEqual([]);
  expect(pages.size).toBe(2);
  for (const [file, { page, mistakes: missing }] of pages) {
    expect(missing).toEqual([]);
    await expect(page).toMatchFileSnapshot(file);
  }
});

/** Replaces `@` by the id of a claim, which must not stand in this file. */
const withIds = (source: string) => source.replaceAll("@", "Z");

const source = withIds(`
const rows: Row[] = [["a row [@2]", 1], ...names.map((name) => [\`row \${name} [@3]\`, 2])];
describe("a block [@4 @5.1]", () => {
  test("a test [@1]", () => {});
  test.each(rows)("takes %s", () => {});
  test.each([["its own row [@2]"]])("%s", () => {});
  test.skipIf(true)(\`after \${cases} cases of '%j' [@1]\`, () => {});
});
test("without a claim", () => {});
take("a text that another function takes [@1]", () => {});
`);

test("a title's ids are found in tests, blocks and rows of tables, and in nothing else", () => {
  expect(claimedIn("some.test.ts", source)).toEqual({
    tests: [
      { file: "some.test.ts", title: "a block > takes a row", ids: ["Z2"] },
      { file: "some.test.ts", title: "a block > takes row …", ids: ["Z3"] },
      { file: "some.test.ts", title: "a block", ids: ["Z4", "Z5.1"] },
      { file: "some.test.ts", title: "a block > a test", ids: ["Z1"] },
      { file: "some.test.ts", title: "a block > its own row", ids: ["Z2"] },
      { file: "some.test.ts", title: "a block > after … cases of '…'", ids: ["Z1"] },
    ],
    mistakes: [withIds("no test has this title in some.test.ts: a text that another function takes [@1]")],
  });
});

test("claims without a test and titles with an unknown id are mistakes", () => {
  const { tests } = claimedIn("some.test.ts", source);
  expect(proofPage({ Heading: { Z1: "proven", Z9: "not proven" } }, tests, conformanceShape).mistakes).toEqual([
    withIds("no title of a test ends with [@9]"),
  ]);
  const { mistakes } = proofPages({ tests: tests.slice(0, 1), mistakes: [] });
  expect(mistakes).toEqual([withIds("no claim has the id of a title in some.test.ts: [@2]")]);
});

test("a promise shows its tests and how much of it they try", () => {
  const tests = [
    { file: "e2e/kills.e2e.test.ts", title: "…", ids: ["Z1"] },
    { file: "e2e/kills.nightly.test.ts", title: "loses <nothing>", ids: ["Z1", "Z2"] },
  ];
  const { page } = proofPage({ H: { Z1: { promise: "p", quick: "one", nightly: "many" } } }, tests, promisesShape);
  const row = page.split("\n").find((line) => line.startsWith("| Z1"));
  expect(row).toBe(
    "| Z1 | p | [kills](../e2e/kills.e2e.test.ts): every row of its table<br>" +
      "[kills.nightly](../e2e/kills.nightly.test.ts): loses &lt;nothing> | one | many |",
  );
});
