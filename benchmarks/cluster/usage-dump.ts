/** What a cluster's database really holds of usage, past every report: for checkers that trust nobody. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { superuser } from "@weiche/router/src/db/cluster.ts";
import { readPostmaster } from "@weiche/router/src/db/postmaster.ts";
import type { Cluster } from "./cluster.ts";

export interface DumpedRecord {
  readonly requestId: string;
  readonly outcome: "finished" | "client-ended" | "limit-ended" | "broken" | "void";
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export async function dumpUsage(cluster: Cluster): Promise<DumpedRecord[]> {
  await using client = await connect(cluster);
  const { rows } = await client.query<DumpedRecord>(
    `select request_id as "requestId", outcome, prompt_tokens as "promptTokens", completion_tokens as "completionTokens"
     from usage_records`,
  );
  return rows;
}

/** Every row of every table, as text. */
export async function dumpTexts(cluster: Cluster): Promise<string> {
  await using client = await connect(cluster);
  const tables = await client.query<{ name: string }>(
    `select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  const texts: string[] = [];
  for (const { name } of tables.rows) {
    const { rows } = await client.query<{ text: string }>(`select row_to_json(one)::text as text from ${name} one`);
    texts.push(name, ...rows.map(({ text }) => text));
  }
  return texts.join("\n");
}

async function connect({ directory }: Cluster): Promise<Pick<Client, "query"> & AsyncDisposable> {
  const database = join(directory, "data/router/database");
  const { port, socketDir } = readPostmaster(join(database, "cluster"))!;
  const client = new Client({
    ...{ host: socketDir === "" ? "127.0.0.1" : socketDir, port, user: superuser, database: "weiche" },
    password: readFileSync(join(database, "password"), "utf8"),
  });
  await client.connect();
  return { query: client.query.bind(client), [Symbol.asyncDispose]: () => client.end() };
}
