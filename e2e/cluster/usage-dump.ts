/** Reads the usage from a cluster's database, for checkers that do not rely on reports. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import { openClient } from "@weiche/router/src/db/client.ts";
import { superuser } from "@weiche/router/src/db/cluster.ts";
import { readPostmaster, type Postmaster } from "@weiche/router/src/db/postmaster.ts";
import type { Cluster } from "./cluster.ts";

export interface DumpedRecord {
  readonly requestId: string;
  readonly attempt: number;
  readonly node: string;
  readonly accountId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly model: string;
  readonly day: string;
  /** `void`: the router has declared the attempt void. */
  readonly outcome: "finished" | "client-ended" | "limit-ended" | "broken" | "void";
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly credits: bigint;
}

/** A sum over all periods. */
export interface DumpedSum {
  /** What is summed: `account <id>`, `model <id> <name>`, `day <id> <day> <user> <key> <model>`. */
  readonly of: string;
  readonly requests: bigint;
  readonly promptTokens: bigint;
  readonly completionTokens: bigint;
  readonly credits: bigint;
}

export interface UsageDump {
  readonly records: readonly DumpedRecord[];
  readonly totals: readonly DumpedSum[];
  readonly days: readonly DumpedSum[];
}

export async function dumpUsage(cluster: Cluster): Promise<readonly DumpedRecord[]> {
  return (await dumpAllUsage(cluster)).records;
}

/** Reads all usage tables in one snapshot. */
export async function dumpAllUsage(cluster: Cluster): Promise<UsageDump> {
  await using client = await connect(cluster);
  return await readUsage(client);
}

export async function readUsage(client: Client): Promise<UsageDump> {
  await client.query("begin isolation level repeatable read");
  const records = await client.query<RecordRow>(recordsSql);
  const totals = await client.query<SumRow>(totalsSql);
  const days = await client.query<SumRow>(daysSql);
  return {
    records: records.rows.map((row) => ({ ...row, credits: BigInt(row.credits) })),
    totals: totals.rows.map(sumOf),
    days: days.rows.map(sumOf),
  };
}

/** Returns all rows of all tables as text. */
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

/** Connects to the embedded server as its superuser. */
export function connect(cluster: Cluster): ReturnType<typeof openClient> {
  const { port, socketDir } = postmasterOf(cluster);
  return openClient({
    ...{ host: socketDir === "" ? "127.0.0.1" : socketDir, port, user: superuser, database: "weiche" },
    password: readFileSync(join(databaseOf(cluster), "password"), "utf8"),
    connectionTimeoutMillis: 10_000,
  });
}

export function postmasterOf(cluster: Cluster): Postmaster {
  return readPostmaster(join(databaseOf(cluster), "cluster"))!;
}

function databaseOf({ directory }: Cluster): string {
  return join(directory, "data/router/database");
}

type RecordRow = Omit<DumpedRecord, "credits"> & { readonly credits: string };
type SumRow = Readonly<Record<keyof DumpedSum, string>>;

const recordsSql = `select request_id as "requestId", attempt, node, account_id as "accountId", user_id as "userId",
  key_id as "keyId", model, day::text, outcome, prompt_tokens as "promptTokens", completion_tokens as "completionTokens",
  credits::text from usage_records`;
const sums = `sum(requests)::text as requests, sum(prompt_tokens)::text as "promptTokens",
  sum(completion_tokens)::text as "completionTokens", sum(credits)::text as credits`;
const totalsSql = `select trim(scope || ' ' || account_id || ' ' || subject) as of, ${sums} from usage_totals group by 1`;
const daysSql = `select concat_ws(' ', 'day', account_id, day, user_id, key_id, model) as of, ${sums} from usage_days group by 1`;

function sumOf({ of, ...sum }: SumRow): DumpedSum {
  const counts = Object.entries(sum).map(([name, text]) => [name, BigInt(text)] as const);
  return { of, ...(Object.fromEntries(counts) as Record<keyof typeof sum, bigint>) };
}
