/** Migrates the schema with the numbered SQL files of `router/migrations`, each once, by one router at a time. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { sql, type Kysely } from "kysely";
import { Migrator, type Migration } from "kysely/migration";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { describeError } from "@weiche/shared/program/log.ts";

const folder = join(import.meta.dirname, "../../migrations");

/**
 * Applies migrations up to `upTo`, or all if it is undefined. Returns the migrations of a newer version that the database
 * has: migrations only add to the schema, so this version runs on it too. Throws a `StartError` if the database has
 * other migrations.
 */
export async function migrate(database: Kysely<unknown>, upTo?: string): Promise<readonly string[]> {
  let newer: readonly string[] = [];
  const migrator = new Migrator({
    db: database,
    provider: {
      // The migrator holds its lock now, so no other router migrates meanwhile.
      async getMigrations() {
        newer = await newerMigrations(database);
        return readMigrations(newer);
      },
    },
  });
  const { error, results } = await (upTo === undefined ? migrator.migrateToLatest() : migrator.migrateTo(upTo));
  if (error === undefined) return newer;
  if (error instanceof StartError) throw error;
  const failed = results?.find(({ status }) => status === "Error")?.migrationName ?? "the schema";
  throw new StartError(`cannot migrate the database (${failed}): ${describeError(error).error}`);
}

/** Lists the names of all migrations in order. */
export function migrationNames(): readonly string[] {
  const files = readdirSync(folder).filter((name) => /^\d{4}-[a-z-]+\.sql$/.test(name));
  return files.map((name) => name.replace(/\.sql$/, "")).toSorted();
}

async function newerMigrations(database: Kysely<unknown>): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by timestamp, name`.execute(
    database,
  );
  const applied = rows.map(({ name }) => name);
  const known = migrationNames();
  const other = applied.findIndex((name, index) => index < known.length && name !== known[index]);
  if (other >= 0)
    throw new StartError(
      `the database was not migrated by this version or a newer one: it has ${applied[other]} in place of ` +
        `${known[other]}; install the version that used it last, or name another database`,
    );
  return applied.slice(known.length);
}

/** Reads the migrations. `newer`: names in the database without a file here. They are listed but never run. */
function readMigrations(newer: readonly string[]): Record<string, Migration> {
  const files = migrationNames().map((name): [string, Migration] => {
    const text = readFileSync(join(folder, `${name}.sql`), "utf8");
    return [name, { up: async (db: Kysely<unknown>) => void (await sql.raw(text).execute(db)) }];
  });
  return Object.fromEntries([...files, ...newer.map((name): [string, Migration] => [name, { up: async () => {} }])]);
}
