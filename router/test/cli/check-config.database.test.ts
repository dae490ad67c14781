/** `check-config` asks the database whether accounts have booked what the catalogue changes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { createAccounts } from "../../src/accounts/accounts.ts";
import { publishPackages } from "../../src/subscriptions/publish-packages.ts";
import { testDatabases } from "../db/database-fixture.ts";
import { runWeiche } from "./run-weiche.ts";

const server = await forThisFile(testDatabases());
let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "weiche-check-database-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const demo = readFileSync(join(import.meta.dirname, "../../../deploy/demo/catalogue.yaml"), "utf8");
const { models } = parse(demo) as { models: object[] };
const validFrom = "2026-01-01T00:00:00+01:00";
const limits = { credits: 5_000_000, requestsPerMinute: 30, parallel: 5, support: false };

/** A catalogue with packages by their prices, each on a line of its own. */
function catalogueOf(prices: Readonly<Record<string, number>>): string {
  const packages = Object.entries(prices).map(([name, price]) => ({ name, terms: [{ validFrom, price, ...limits }] }));
  const lines = packages.map((one) => `  - ${JSON.stringify(one)}`);
  return [`models: ${JSON.stringify(models)}`, "packages:", ...lines, ""].join("\n");
}

async function check(url: string, prices: Readonly<Record<string, number>>) {
  writeFileSync(join(folder, "catalogue.yaml"), catalogueOf(prices));
  const text = `catalogue: catalogue.yaml\ndatabase:\n  url: ${JSON.stringify(url)}\n`;
  writeFileSync(join(folder, "router.yaml"), text, { mode: 0o600 });
  const { code, out } = await runWeiche(["check-config", join(folder, "router.yaml")]);
  return { code, lines: out.trim().replaceAll(`${folder}/`, "").split("\n") };
}

const fine = { code: 0, lines: ["router.yaml is fine", "catalogue.yaml is fine"] };

test("changed terms and a missing package are mistakes if an account has booked them, with the line", async () => {
  const database = await server.newDatabase();
  const { packages } = parseCatalogue(catalogueOf({ Small: 7, Large: 35, Old: 1 }));
  await publishPackages(database, packages!, systemClock.now());
  const accounts = createAccounts({ database, clock: systemClock, portalUrl: "https://portal.example" });
  for (const name of ["Large", "Old"])
    await accounts.create({ name, ownerEmail: `${name}@example.com`, package: name });
  const url = database.connection.connectionString!;
  expect(await check(url, { Small: 9, Large: 35, Old: 1 })).toEqual(fine);
  expect(await check(url, { Small: 7, Large: 36 })).toEqual({
    code: 1,
    lines: [
      "router.yaml is fine",
      "catalogue.yaml:2: Old is not listed, but booked by an account: list it until the account has another package",
      expect.stringMatching(
        /^catalogue\.yaml:4: the terms of Large from .* are booked and cannot change: restore them/,
      ),
    ],
  });
  // The check changes nothing.
  const { rows } = await database.pool.query("select count(*) from packages where is_listed");
  expect(rows).toEqual([{ count: 3n }]);
  expect(await check(url, { Small: 7, Large: 35, Old: 1 })).toEqual(fine);
});

test("a database without a schema is fine, and one that does not answer is a warning", async () => {
  expect(await check(await server.emptyDatabase(), { Small: 7 })).toEqual(fine);
  expect(await check("postgres://nobody@127.0.0.1:1/none", { Small: 7 })).toEqual({
    code: 0,
    lines: [
      expect.stringMatching(
        /^router\.yaml:3: warning: could not ask the database \(.*ECONNREFUSED.*\), so packages that accounts have booked are not checked$/,
      ),
      ...fine.lines,
    ],
  });
});
