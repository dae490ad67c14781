/**
 * Many accounts with the largest package and one key each, so that the limits of a single account are out of the way of
 * the load while every request is still authenticated, limited and metered. Written into the router's database directly:
 * one by one over the command they would take minutes.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { hashApiKey, makeApiKey } from "@weiche/router/src/keys/api-key.ts";
import { superuser } from "@weiche/router/src/db/cluster.ts";
import { readPostmaster, type Postmaster } from "@weiche/router/src/db/postmaster.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import type { Cluster } from "../cluster/cluster.ts";

/** Writes a file with a key on each line, and returns its name. */
export async function insertAccounts(cluster: Cluster, count: number): Promise<string> {
  const keys = Array.from({ length: count }, () => makeApiKey());
  const ids = (): string[] => keys.map(() => uuidv7(systemClock));
  const [accounts, users, keyIds] = [ids(), ids(), ids()];
  const database = join(cluster.directory, "data/router/database");
  const { port, socketDir } = postmasterOf(cluster);
  const client = new Client({
    ...{ host: socketDir === "" ? "127.0.0.1" : socketDir, port, user: superuser, database: "weiche" },
    password: readFileSync(join(database, "password"), "utf8"),
  });
  await client.connect();
  try {
    await client.query("begin");
    await client.query(
      "insert into accounts (id, name, created_at) select id, 'load', now() from unnest($1::uuid[]) id",
      [accounts],
    );
    await client.query(
      `insert into users (id, account_id, email, role, created_at)
       select u, a, u || '@example.com', 'owner', now() from unnest($1::uuid[], $2::uuid[]) given (u, a)`,
      [users, accounts],
    );
    await client.query(
      `insert into subscriptions (account_id, package, state, started_at)
       select id, 'Business Plus', 'active', date_trunc('day', now()) from unnest($1::uuid[]) id`,
      [accounts],
    );
    await client.query(
      `insert into api_keys (id, account_id, user_id, hash, last_four, name, created_at)
       select k, a, u, h, 'load', 'load', now() from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[]) given (k, a, u, h)`,
      [keyIds, accounts, users, keys.map(hashApiKey)],
    );
    await client.query("commit");
  } finally {
    await client.end();
  }
  const file = join(cluster.directory, "keys");
  writeFileSync(file, `${keys.join("\n")}\n`);
  return file;
}

export function postmasterOf(cluster: Cluster): Postmaster {
  return readPostmaster(join(cluster.directory, "data/router/database/cluster"))!;
}
