/** The pages of proofs are fresh, and refer only to existing tests. */
import { beforeAll, describe, expect, test } from "vitest";
import { conformanceShape, promisesShape, proofPages, type ProofPages } from "./proof-pages.ts";
import { proofPage, testsOf } from "./proof-page.ts";

const rules = {
  Heading: [
    { rule: "nobody proves this", by: { "api-rules": [] } },
    { rule: "proven by a test that is gone", by: { "api-rules": ["gone"] } },
    { rule: "proven in a file that is gone", by: { gone: ["chat needs a key"] } },
    { rule: "proven in one of two files of a name", by: { "chat-request": ["null is the same as absent"] } },
    { rule: "that file by its folder", by: { "intake/chat-request": ["null is the same as absent"] } },
    { rule: "proven by a row", by: { "api-rules": ["chat needs a key"] } },
    { rule: "proven by a row with a title", by: { "api-parameters": ["chat accepts: seed may be negative"] } },
    { rule: "proven by a row that is not there", by: { "api-parameters": ["chat accepts: no such row"] } },
    { rule: "proven by a whole table", by: { "api-parameters": ["chat accepts: %s"] } },
    { rule: "proven with a computed title", by: { switching: ["during … switches under load, …"] } },
    { rule: "proven by a name that is not a test", by: { "proof-pages": ["a text that another function takes"] } },
  ],
};

/** Both subjects use one list of tests, because listing them takes seconds. Listing loads this file, so it does not list. */
let proofs: ProofPages;
beforeAll(() => {
  proofs = proofPages(testsOf(rules));
});

test("every rule and every promise has a test, and the pages are fresh (node docs/tools/proof-pages.ts)", async () => {
  const { pages } = proofs;
  expect(pages.size).toBe(2);
  for (const [file, { page, mistakes }] of pages) {
    expect(mistakes).toEqual([]);
    await expect(page).toMatchFileSnapshot(file);
  }
});

describe("of some claims", () => {
  const promise = { id: "Z1", promise: "p", quick: "one", nightly: "many", by: { kills: ["gone"] } };
  const promises = { Heading: [promise] };
  const take = (_text: string, run: () => void) => run();
  take("a text that another function takes", () => {});

  test("claims without a test, and missing tests, are mistakes", () => {
    expect(proofPage(rules, proofs.tests, conformanceShape).mistakes).toEqual([
      "no test proves: nobody proves this",
      "no test of this name in api-rules: gone",
      "no test of this name in gone: chat needs a key",
      "no test of this name in chat-request: null is the same as absent",
      "no test of this name in api-parameters: chat accepts: no such row",
      "no test of this name in proof-pages: a text that another function takes",
    ]);
  });

  test("a promise shows how much of it is tested", () => {
    const { page } = proofPage(promises, proofs.tests, promisesShape);
    expect(page).toMatch(/^\| Z1 \| p \| .*kills\.e2e\.test\.ts\): gone \| one \| many \|$/m);
  });
});
