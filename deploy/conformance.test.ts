/** The page that tells customers what of the service is proven is right, and says what the tests say. */
import { expect, test } from "vitest";
import { conformance, pageFile } from "./conformance.ts";

test("every rule of the service has a test, and the page is fresh (node deploy/conformance.ts)", async () => {
  const { page, mistakes } = conformance();
  expect(mistakes).toEqual([]);
  await expect(page).toMatchFileSnapshot(pageFile);
});

test("a rule without a test, and a test that is not there, are mistakes", () => {
  const rules = {
    Heading: [
      { rule: "nobody proves this", by: { "api-rules": [] } },
      { rule: "proven by a test that is gone", by: { "api-rules": ["gone"] } },
      { rule: "proven in a file that is gone", by: { gone: ["chat needs a key"] } },
      { rule: "proven by a row", by: { "api-rules": ["chat needs a key"] } },
      {
        rule: "proven by a row of a table with a title",
        by: { "api-parameters": ["chat accepts: seed may be negative"] },
      },
      { rule: "proven by another table's row", by: { "api-parameters": ["chat accepts: no such row"] } },
    ],
  };
  expect(conformance(rules).mistakes).toEqual([
    "no test proves: nobody proves this",
    "no test of this name in api-rules: gone",
    "no test of this name in gone: chat needs a key",
    "no test of this name in api-parameters: chat accepts: no such row",
  ]);
});
