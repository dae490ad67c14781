/** A version goes back: it runs on the schema of a newer one, and on no other that it does not know. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openClient } from "../../src/db/client.ts";
import { openDatabase } from "../../src/db/database.ts";
import { migrationNames } from "../../src/db/migrate.ts";
import { silent, startDatabaseServer, urlOf } from "./database-fixture.ts";

const server = await forThisFile(startDatabaseServer());

/** A database with today's schema on which these statements were run. Returns its address. */
async function migratedDatabase(name: string, ...statements: readonly string[]): Promise<string> {
  const run = async (connection: ClientConfig, lines: readonly string[]) => {
    await using client = await openClient(connection);
    for (const line of lines) await client.query(line);
  };
  await run(server.embedded.connection, [`create database ${name}`]);
  const url = urlOf(server.embedded, name);
  await using _first = await openDatabase({ stateDir: "", databaseUrl: url }, systemClock, silent);
  await run({ connectionString: url }, statements);
  return url;
}

/** Opens it as a router does. Returns what the operator is told. */
async function open(url: string): Promise<readonly (readonly string[])[]> {
  const told: (readonly string[])[] = [];
  const events = { ...silent, schemaIsNewer: (migrations: readonly string[]) => void told.push(migrations) };
  await using database = await openDatabase({ stateDir: "", databaseUrl: url }, systemClock, events);
  await database.pool.query("select id, name from accounts");
  return told;
}

const applied = (name: string, at = "2099-01-01T00:00:00.000Z") =>
  `insert into kysely_migration (name, timestamp) values ('${name}', '${at}')`;

test("a database that a newer version has migrated is used, and the operator is told once which migrations those are", async () => {
  const url = await migratedDatabase(
    "newer",
    "alter table accounts add column colour text not null default 'red'",
    applied("9998-colours"),
    applied("9999-shades", "2099-01-01T00:00:00.001Z"),
  );
  expect(await open(url)).toEqual([["9998-colours", "9999-shades"]]);
  expect(await open(await migratedDatabase("same"))).toEqual([]);
});

test.each([
  ["lacks one of ours, though it has a later one", ["0011-usage-voids"], [applied("9999-later")]],
  ["has another one in the place of ours", ["0011-usage-voids"], [applied("0011-other", "2000-01-01T00:00:00.000Z")]],
])("a database that %s is refused with what to do, and stays as it is", async (what, removed, added) => {
  const name = `other_${what.length}`;
  const remove = removed.map((each) => `delete from kysely_migration where name = '${each}'`);
  const url = await migratedDatabase(name, ...remove, ...added);
  await expect(open(url)).rejects.toThrow(/was not migrated by this version or a newer one.*install the version/s);
  await using client = await openClient({ connectionString: url });
  const { rows } = await client.query<{ count: string }>("select count(*) from kysely_migration");
  expect(Number(rows[0]!.count)).toBe(migrationNames().length);
});

/** Finds statements that break a version which does not know the migration. */
function breaking(text: string): readonly string[] {
  const code = text.replaceAll(/--.*$/gm, "").toLowerCase();
  const taken = /\bdrop (table|column|default|view|function|sequence)\b|\brename\b|\bset not null\b|\bset data type\b/g;
  const demanded = /\badd (column )?(?!constraint)\w+ [^,;]*\bnot null\b(?![^,;]*\bdefault\b)[^,;]*/g;
  return [...code.matchAll(taken), ...code.matchAll(demanded)].map(([found]) => found);
}

const textOf = (name: string) => readFileSync(join(import.meta.dirname, "../../migrations", `${name}.sql`), "utf8");

test("migrations only add, since the version before runs on their schema, too", () => {
  const firstReleased = "0016-ledger"; // nobody goes back behind it
  const broken = migrationNames().filter((name) => name > firstReleased && breaking(textOf(name)).length > 0);
  expect(broken).toEqual([]);
  // Earlier migrations did more, and are found.
  expect(breaking(textOf("0008-portal"))).toContain("drop column");
  expect(breaking(textOf("0009-usage-portal"))).toEqual(expect.arrayContaining(["drop column", "set not null"]));
  expect(breaking("alter table accounts add column colour text not null;")).toHaveLength(1);
  expect(breaking("alter table accounts add column colour text not null default 'red', add tint text;")).toEqual([]);
});
