/** Reads the whole database in one snapshot while routers keep working. */
import { pipeline } from "node:stream/promises";
import type { Client, ClientConfig } from "pg";
import { to as copyTo } from "pg-copy-streams";
import { version } from "@weiche/shared/program/version.ts";
import { openClient } from "../db/client.ts";
import { backupLock } from "../usage/usage-days.ts";
import { writeBackup, type BackupHeader, type BackupTable } from "./backup-file.ts";

/** Tables that a backup omits: they are useless to later routers, or would restore access that was ended since. */
export const leftOut = [
  "kysely_migration",
  "kysely_migration_lock",
  "ledger_identity",
  "leases",
  "routers",
  "sessions",
  "password_resets",
];

export interface DumpProgress {
  /** Size of the tables as the server estimates it. */
  readonly bytesTotal: number;
  readonly table: string;
  /** Uncompressed bytes written so far. */
  readonly bytes: number;
}

/** Writes the uncompressed bytes of a backup to `sink`. Returns its header. */
export async function dumpDatabase(
  connection: ClientConfig,
  sink: NodeJS.WritableStream,
  onProgress: (progress: DumpProgress) => void,
): Promise<BackupHeader> {
  await using client = await openClient({ ...connection, application_name: "weiche backup" });
  await client.query("begin isolation level repeatable read read only");
  // Prevents that routers drop old partitions meanwhile: the drop would wait for this transaction, and inserts for the drop.
  await client.query("select pg_advisory_xact_lock_shared($1)", [backupLock]);
  const header = await readHeader(client);
  const bytesTotal = await sizeOf(client, header.tables);
  let bytes = 0;
  async function* rowsOf({ name, columns }: BackupTable): AsyncGenerator<Buffer, number> {
    const columnList = columns.map((column) => client.escapeIdentifier(column)).join(", ");
    const copy = client.query(copyTo(`copy ${client.escapeIdentifier(name)} (${columnList}) to stdout`));
    for await (const chunk of copy as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      onProgress({ bytesTotal, table: name, bytes });
      yield chunk;
    }
    return copy.rowCount;
  }
  await pipeline(writeBackup(header, rowsOf), sink);
  return header;
}

async function readHeader(client: Client): Promise<BackupHeader> {
  const { rows: now } = await client.query<{ at: string }>(
    `select to_char(transaction_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at`,
  );
  const { rows: migrations } = await client.query<{ name: string }>("select name from kysely_migration order by name");
  const { rows: tables } = await client.query<BackupTable>(
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname <> all ($1)
     group by c.relname order by c.relname`,
    [leftOut],
  );
  const { rows: references } = await client.query<{ from: string; to: string }>(
    `select f.relname as "from", t.relname as "to" from pg_constraint k
     join pg_class f on f.oid = k.conrelid join pg_class t on t.oid = k.confrelid
     where k.contype = 'f' and k.conrelid <> k.confrelid and f.relnamespace = current_schema()::regnamespace`,
  );
  return {
    version,
    at: now[0]!.at,
    migrations: migrations.map(({ name }) => name),
    tables: inOrder(tables, references),
  };
}

/** Sorts tables so that each table follows the tables that it references. */
function inOrder(
  tables: readonly BackupTable[],
  references: readonly { readonly from: string; readonly to: string }[],
): readonly BackupTable[] {
  const sorted: BackupTable[] = [];
  let left = [...tables];
  while (left.length > 0) {
    const isFree = ({ name }: BackupTable) =>
      !references.some(({ from, to }) => from === name && left.some((other) => other.name === to));
    const free = left.filter(isFree);
    if (free.length === 0) throw new Error(`tables refer to each other: ${left.map(({ name }) => name).join(", ")}`);
    sorted.push(...free);
    left = left.filter((table) => !free.includes(table));
  }
  return sorted;
}

async function sizeOf(client: Client, tables: readonly BackupTable[]): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>(
    "select coalesce(sum(pg_relation_size(quote_ident(name)::regclass)), 0) as bytes from unnest($1::text[]) as name",
    [tables.map(({ name }) => name)],
  );
  return Number(rows[0]!.bytes);
}
