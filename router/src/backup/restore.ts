/** Restores a backup into an empty database. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Client, ClientConfig } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { openClient } from "../db/client.ts";
import { checkServer, migrateAlone } from "../db/database.ts";
import { migrationNames } from "../db/migrate.ts";
import { openPool } from "../db/pool.ts";
import { dayOfPartition, makeUsageDays } from "../usage/usage-days.ts";
import { BackupReader, type BackupHeader, type BackupTable } from "./backup-file.ts";

export interface RestoreProgress {
  readonly table: string;
  /** The table's position, from 1. */
  readonly number: number;
  readonly tables: number;
}

export interface Restored {
  readonly header: BackupHeader;
  readonly rows: number;
}

/**
 * Reads a whole backup. With a connection, it fills that database in one transaction: after a damaged or incomplete
 * backup, the database has no accounts. Without a connection, it only checks the backup. Throws a `StartError`.
 */
export async function restoreBackup(
  source: AsyncIterable<Buffer>,
  connection: ClientConfig | undefined,
  onProgress: (progress: RestoreProgress) => void,
): Promise<Restored> {
  const reader = new BackupReader(source);
  const header = await reader.header();
  if (connection) await prepare(connection, header);
  await using client = connection && (await openClient({ ...connection, application_name: "weiche restore" }));
  if (client) await begin(client, header.tables);
  const counts: Record<string, number> = {};
  for (const [index, table] of header.tables.entries()) {
    onProgress({ table: table.name, number: index + 1, tables: header.tables.length });
    if (client) counts[table.name] = await load(client, table, reader.rows());
    else for await (const _ of reader.rows());
  }
  const { rows } = await reader.trailer();
  const wrong = client && header.tables.find(({ name }) => counts[name] !== rows[name]);
  if (wrong)
    throw new StartError(`the backup is damaged: the number of rows of ${wrong.name} differs from its trailer`);
  if (client) await finish(client, header.tables);
  return { header, rows: Object.values(rows).reduce((sum, each) => sum + each, 0) };
}

/** Makes the tables with the schema of the backup. */
async function prepare(connection: ClientConfig, { version, migrations, tables }: BackupHeader): Promise<void> {
  const known = migrationNames();
  const unknown = migrations.find((name, index) => known[index] !== name);
  if (unknown !== undefined)
    throw new StartError(
      `the backup was written by Weiche ${version}, and its migration ${unknown} is unknown to this version: ` +
        "install that version first",
    );
  await checkServer(connection);
  await requireEmpty(connection);
  await migrateAlone(connection, migrations.at(-1));
  await makePartitions(connection, tables);
}

/** Begins the transaction and empties the tables. */
async function begin(client: Client, tables: readonly BackupTable[]): Promise<void> {
  await client.query("begin");
  for (const { name } of tables) {
    // Triggers would record each restored row as a change.
    await client.query(`alter table ${client.escapeIdentifier(name)} disable trigger user`);
  }
  for (const { name } of tables.toReversed()) await client.query(`delete from ${client.escapeIdentifier(name)}`);
}

async function requireEmpty(connection: ClientConfig): Promise<void> {
  await using client = await openClient(connection);
  const { rows } = await client.query<{ there: boolean }>("select to_regclass('accounts') is not null as there");
  if (!rows[0]!.there) return;
  const { rows: accounts } = await client.query("select 1 from accounts limit 1");
  if (accounts.length > 0)
    throw new StartError("the database has accounts: restore into an empty data directory, or an empty database");
}

async function makePartitions(connection: ClientConfig, tables: readonly BackupTable[]): Promise<void> {
  const days = tables.flatMap(({ name }) => dayOfPartition(name) ?? []);
  const pool = openPool({ ...connection, max: 1 }, () => {});
  try {
    await makeUsageDays(pool, days);
  } finally {
    await pool.end();
  }
}

/** Loads the rows of a table and returns their number. */
async function load(client: Client, { name, columns }: BackupTable, rows: AsyncIterable<Buffer>): Promise<number> {
  const columnList = columns.map((column) => client.escapeIdentifier(column)).join(", ");
  const copy = client.query(copyFrom(`copy ${client.escapeIdentifier(name)} (${columnList}) from stdin`));
  await pipeline(Readable.from(rows, { objectMode: false }), copy);
  return copy.rowCount;
}

async function finish(client: Client, tables: readonly BackupTable[]): Promise<void> {
  await client.query("set constraints all immediate"); // a table with deferred checks cannot be altered
  for (const { name } of tables) await client.query(`alter table ${client.escapeIdentifier(name)} enable trigger user`);
  await client.query("commit");
}
