/** Migrates the schema with the numbered SQL files of `router/migrations`: each once, by one router at a time. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { sql, type Kysely } from "kysely";
import { Migrator, type Migration } from "kysely/migration";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { describeError } from "@weiche/shared/program/log.ts";

const folder = join(import.meta.dirname, "../../migrations");

export async function migrate(database: Kysely<unknown>): Promise<void> {
  const migrator = new Migrator({ db: database, provider: { getMigrations: () => Promise.resolve(readMigrations()) } });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find(({ status }) => status === "Error")?.migrationName ?? "the schema";
  throw new StartError(`cannot migrate the database (${failed}): ${describeError(error).error}`);
}

function readMigrations(): Record<string, Migration> {
  const names = readdirSync(folder).filter((name) => /^\d{4}-[a-z-]+\.sql$/.test(name));
  return Object.fromEntries(
    names.map((name) => {
      const text = readFileSync(join(folder, name), "utf8");
      const up = async (db: Kysely<unknown>) => void (await sql.raw(text).execute(db));
      return [name.replace(/\.sql$/, ""), { up }];
    }),
  );
}
