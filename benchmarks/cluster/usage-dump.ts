/** What a cluster's database really holds of usage, past every report: for checkers that trust nobody. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { superuser } from "@weiche/router/src/db/cluster.ts";
import { readPostmaster } from "@weiche/router/src/db/postmaster.ts";
import type { Cluster } from "./cluster.ts";

export interface DumpedRecord {
  readonly requestId: string;
  readonly outcome: "finished" | "client-ended" | "limit-ended" | "broken";
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export async function dumpUsage({ directory }: Cluster): Promise<DumpedRecord[]> {
  const database = join(directory, "data/router/database");
  const { port, socketDir } = readPostmaster(join(database, "cluster"))!;
  const client = new Client({
    ...{ host: socketDir === "" ? "127.0.0.1" : socketDir, port, user: superuser, database: "weiche" },
    password: readFileSync(join(database, "password"), "utf8"),
  });
  await client.connect();
  try {
    const { rows } = await client.query<DumpedRecord>(
      `select request_id as "requestId", outcome, prompt_tokens as "promptTokens", completion_tokens as "completionTokens"
       from usage_records`,
    );
    return rows;
  } finally {
    await client.end();
  }
}
