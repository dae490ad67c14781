import { expect, test } from "vitest";
import { contentDigest } from "./content-digest.ts";

test("the digest of a YAML file ignores comments, format and the order of keys, but no value and no order of a list", () => {
  const digest = contentDigest("models:\n  - id: a # the first\n    factor: 1.5\n  - id: b\n");
  expect(digest).toMatch(/^[0-9a-f]{12}$/);
  expect(contentDigest('{ "models": [{ "factor": 1.50, "id": "a" }, { "id": "b" }] }')).toBe(digest);
  for (const other of ["1.6", "'1.5'"])
    expect(contentDigest(`models: [{ id: a, factor: ${other} }, { id: b }]`)).not.toBe(digest);
  expect(contentDigest("models: [{ id: b }, { id: a, factor: 1.5 }]")).not.toBe(digest);
});
