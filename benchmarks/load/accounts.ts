/**
 * Makes many accounts with the largest package and one key each. So no account's limits reduce the load, and the router still
 * authenticates, limits and meters every request. Writes into the database, because the command would take minutes.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { hashApiKey, makeApiKey } from "@weiche/router/src/callers/api-key.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import type { Cluster } from "../../e2e/cluster/cluster.ts";
import { connect } from "../../e2e/cluster/usage-dump.ts";

/** Inserts accounts, writes a file with a key on each line and returns its path. */
export async function insertAccounts(cluster: Cluster, count: number): Promise<string> {
  const keys = Array.from({ length: count }, () => makeApiKey());
  const ids = (): string[] => keys.map(() => uuidv7(systemClock));
  const [accounts, users, keyIds] = [ids(), ids(), ids()];
  await using client = await connect(cluster);
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
  const file = join(cluster.directory, "keys");
  writeFileSync(file, `${keys.join("\n")}\n`);
  return file;
}
