/** API.md says of refusals, retries and limits what the portal's page Help says. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { apiErrors } from "@weiche/shared/errors.ts";
import { apiFile, apiPage } from "./api-page.ts";

const page = readFileSync(apiFile, "utf8");

test("API.md is fresh (node deploy/api-page.ts)", () => {
  expect(apiPage(page)).toBe(page);
});

test("it names every status with its code", () => {
  const rows = page.slice(page.indexOf("<!-- begin refusals"), page.indexOf("<!-- end refusals"));
  const missing = Object.values(apiErrors).filter(({ status, type, code }) => {
    const name = code === String(status) ? type : code;
    return !rows.includes(`| ${status} \`${name}\` |`);
  });
  expect(missing).toEqual([]);
});
