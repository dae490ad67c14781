/** Makes usage records, as nodes send them, for 50 accounts with a subscription. */
import type { Pool } from "pg";
import type { Grants } from "@weiche/router/src/usage/grants.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type NodeId } from "@weiche/shared/ids.ts";
import type { Random } from "@weiche/shared/random.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

const accounts = 50;

export async function insertUsageAccounts(pool: Pick<Pool, "query">): Promise<void> {
  for (let n = 0; n < accounts; n++) {
    await pool.query("insert into accounts values ($1, $2, null, now())", [idOf("a", n), `account ${n}`]);
    await pool.query(
      "insert into subscriptions values ($1, 'Pro', 'active', date_trunc('day', now()) - interval '9 days')",
      [idOf("a", n)],
    );
  }
}

export function makeUsageRecord(node: NodeId, grants: Grants, random: Random): UsageRecord {
  const account = random.below(accounts);
  const record: Omit<UsageRecord, "grant"> = {
    requestId: asId(uuidv7(systemClock)),
    attempt: 1,
    accountId: asId(idOf("a", account)),
    userId: asId(idOf("b", account * 3 + random.below(3))),
    keyId: asId(idOf("c", account * 6 + random.below(6))),
    model: asId(random.pick(["small-24b", "coder-next", "vl-embedding-2b"])),
    factor: millicredits(1_500n),
    tokensMax: 32_768,
    promptTokens: random.below(29_000),
    completionTokens: random.below(3_000),
    source: "engine",
    outcome: "finished",
    durationMs: random.below(60_000),
    firstTokenMs: random.below(2_000),
  };
  return { ...record, grant: grants.sign(node, record) };
}

function idOf(kind: string, number: number): string {
  return `${kind.repeat(8)}-0000-7000-8000-${String(number).padStart(12, "0")}`;
}
