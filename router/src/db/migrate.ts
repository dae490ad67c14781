/** Migrates the schema with the numbered SQL files of `router/migrations`: each once, by one router at a time. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { sql, type Kysely } from "kysely";
import { Migrator, type Migration } from "kysely/migration";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { describeError } from "@weiche/shared/program/log.ts";

const folder = join(import.meta.dirname, "../../migrations");

/** `upTo`: name of the last migration to apply; absent: all. */
export async function migrate(database: Kysely<unknown>, upTo?: string): Promise<void> {
  const migrator = new Migrator({ db: database, provider: { getMigrations: () => Promise.resolve(readMigrations()) } });
  const { error, results } = await (upTo === undefined ? migrator.migrateToLatest() : migrator.migrateTo(upTo));
  if (error === undefined) return;
  const failed = results?.find(({ status }) => status === "Error")?.migrationName ?? "the schema";
  throw new StartError(`cannot migrate the database (${failed}): ${describeError(error).error}`);
}

/** The names of all migrations, in order. */
export function migrationNames(): readonly string[] {
  const files = readdirSync(folder).filter((name) => /^\d{4}-[a-z-]+\.sql$/.test(name));
  return files.map((name) => name.replace(/\.sql$/, "")).toSorted();
}

function readMigrations(): Record<string, Migration> {
  return Object.fromEntries(
    migrationNames().map((name) => {
      const text = readFileSync(join(folder, `${name}.sql`), "utf8");
      const up = async (db: Kysely<unknown>) => void (await sql.raw(text).execute(db));
      return [name, { up }];
    }),
  );
}
