/** After a downgrade, a version runs on a newer version's schema, and on no other unknown schema. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openClient } from "../../src/db/client.ts";
import { openDatabase } from "../../src/db/database.ts";
import { migrationNames } from "../../src/db/migrate.ts";
import { silent, testDatabases } from "./database-fixture.ts";

const server = await forThisFile(testDatabases());

/** Makes a database with the current schema and runs these statements on it. Returns its URL. */
async function migratedDatabase(...statements: readonly string[]): Promise<string> {
  const url = await server.emptyDatabase();
  await using _first = await openDatabase({ stateDir: "", databaseUrl: url }, systemClock, silent);
  await using client = await openClient({ connectionString: url });
  for (const statement of statements) await client.query(statement);
  return url;
}

/** Opens a database as a router does. Returns the newer migrations that it reports. */
async function open(url: string): Promise<readonly (readonly string[])[]> {
  const told: (readonly string[])[] = [];
  const events = { ...silent, schemaIsNewer: (migrations: readonly string[]) => void told.push(migrations) };
  await using database = await openDatabase({ stateDir: "", databaseUrl: url }, systemClock, events);
  await database.pool.query("select id, name from accounts");
  return told;
}

const applied = (name: string, at = "2099-01-01T00:00:00.000Z") =>
  `insert into kysely_migration (name, timestamp) values ('${name}', '${at}')`;

test("a database migrated by a newer version is used, and its newer migrations are reported once [G5]", async () => {
  const url = await migratedDatabase(
    "alter table accounts add column colour text not null default 'red'",
    applied("9998-colours"),
    applied("9999-shades", "2099-01-01T00:00:00.001Z"),
  );
  expect(await open(url)).toEqual([["9998-colours", "9999-shades"]]);
  expect(await open(await migratedDatabase())).toEqual([]);
});

test.each([
  ["lacks a migration and has a later one", ["0011-usage-voids"], [applied("9999-later")]],
  [
    "has another migration in place of a known one",
    ["0011-usage-voids"],
    [applied("0011-other", "2000-01-01T00:00:00.000Z")],
  ],
])("a database that %s is refused with advice and not changed [G5]", async (_what, removed, added) => {
  const remove = removed.map((each) => `delete from kysely_migration where name = '${each}'`);
  const url = await migratedDatabase(...remove, ...added);
  await expect(open(url)).rejects.toThrow(/was not migrated by this version or a newer one.*install the version/s);
  await using client = await openClient({ connectionString: url });
  const { rows } = await client.query<{ count: string }>("select count(*) from kysely_migration");
  expect(Number(rows[0]!.count)).toBe(migrationNames().length);
});

/** Finds statements that would break a version that does not know the migration. */
function breaking(text: string): readonly string[] {
  const code = text.replaceAll(/--.*$/gm, "").toLowerCase();
  const taken = /\bdrop (table|column|default|view|function|sequence)\b|\brename\b|\bset not null\b|\bset data type\b/g;
  const demanded = /\badd (column )?(?!constraint)\w+ [^,;]*\bnot null\b(?![^,;]*\bdefault\b)[^,;]*/g;
  return [...code.matchAll(taken), ...code.matchAll(demanded)].map(([found]) => found);
}

const textOf = (name: string) => readFileSync(join(import.meta.dirname, "../../migrations", `${name}.sql`), "utf8");

test("migrations only add, because the version before must run on their schema [G5]", () => {
  const firstReleased = "0016-ledger"; // a downgrade to an earlier schema is not supported
  const broken = migrationNames().filter((name) => name > firstReleased && breaking(textOf(name)).length > 0);
  expect(broken).toEqual([]);
  // Earlier migrations changed more, and the check finds them.
  expect(breaking(textOf("0008-portal"))).toContain("drop column");
  expect(breaking(textOf("0009-usage-portal"))).toEqual(expect.arrayContaining(["drop column", "set not null"]));
  expect(breaking("alter table accounts add column colour text not null;")).toHaveLength(1);
  expect(breaking("alter table accounts add column colour text not null default 'red', add tint text;")).toEqual([]);
});
