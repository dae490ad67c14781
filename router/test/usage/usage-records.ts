/** Makes usage records from a seed, computes their expected sums, and reads the sums of the database. */
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type NodeId } from "@weiche/shared/ids.ts";
import type { Random } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createGrants, type Grants } from "../../src/usage/grants.ts";
import type { Database } from "../../src/db/database.ts";

/** Signs the grants of these records. A ledger needs it to accept the records. */
export const grants = createGrants(Buffer.alloc(32, "a secret of tests"));
export const grantedNode = asId<NodeId>("node-1");

/** Returns the record with a grant for this node. */
export function granted(record: Omit<UsageRecord, "grant">, node = grantedNode, by: Grants = grants): UsageRecord {
  return { ...record, grant: by.sign(node, record) };
}

/** Makes a record of a request accepted at `atMs`, of one of a few accounts and keys, granted to `grantedNode`. */
export function makeRecord(random: Random, atMs: number, more: Partial<UsageRecord> = {}): UsageRecord {
  const account = random.below(3);
  const user = account * 2 + random.below(2);
  const record: Omit<UsageRecord, "tokensMax" | "grant"> & Partial<UsageRecord> = {
    requestId: asId(uuidv7({ now: () => atMs })),
    attempt: 1,
    accountId: idOf("a", account),
    userId: idOf("b", user),
    keyId: idOf("c", user * 2 + random.below(2)),
    model: asId(random.pick(["tiny-chat", "tiny-embed"])),
    factor: millicredits(BigInt(random.pick([250, 1000, 1500]))),
    promptTokens: random.below(30_000),
    completionTokens: random.below(3_000),
    estimatedTokens: random.below(2) * random.below(100),
    source: "engine",
    outcome: "finished",
    durationMs: random.below(60_000),
    ...more,
  };
  return granted({ tokensMax: record.promptTokens + record.completionTokens, ...record });
}

export function idOf<T extends UsageRecord["accountId" | "userId" | "keyId"]>(
  kind: "a" | "b" | "c",
  number: number,
): T {
  return asId<T>(`${kind.repeat(8)}-0000-7000-8000-${String(number).padStart(12, "0")}`);
}

interface Sums {
  readonly requests: bigint;
  readonly tokens: bigint;
  readonly estimated: bigint;
  readonly credits: bigint;
}

/** Adds up the records, each attempt once. Attempts that are void or had a later attempt count nothing. */
export function sumOf(records: readonly UsageRecord[]): Sums {
  const voidBelow = new Map<string, number>();
  for (const { requestId, attempt, outcome } of records) {
    const below = outcome === "void" ? attempt + 1 : attempt;
    voidBelow.set(requestId, Math.max(below, voidBelow.get(requestId) ?? 0));
  }
  const counts = records.filter(({ requestId, attempt }) => attempt >= voidBelow.get(requestId)!);
  const once = new Map(counts.map((record) => [`${record.requestId} ${record.attempt}`, record]));
  let sums: Sums = { requests: 0n, tokens: 0n, estimated: 0n, credits: 0n };
  for (const { promptTokens, completionTokens, estimatedTokens = 0, factor, outcome } of once.values()) {
    const tokens = BigInt(promptTokens + completionTokens);
    sums = {
      requests: sums.requests + (outcome === "broken" ? 0n : 1n),
      tokens: sums.tokens + tokens,
      estimated: sums.estimated + BigInt(Math.min(estimatedTokens, promptTokens + completionTokens)),
      credits: sums.credits + tokens * factor,
    };
  }
  return sums;
}

/** Reads every kind of sum of the database. All must be equal. */
export async function sumsOf({
  pool,
}: Database): Promise<Readonly<Record<"records" | "account" | "user" | "key" | "model" | "days", Sums>>> {
  const sum = (requests: string) => `coalesce(sum(${requests}), 0)::bigint as requests,
    coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint as tokens,
    coalesce(sum(estimated_tokens), 0)::bigint as estimated, coalesce(sum(credits), 0)::bigint as credits`;
  const { rows } = await pool.query<Sums & { what: string }>(`
    select 'records' as what, ${sum("case when outcome in ('broken', 'void') then 0 else 1 end")} from usage_records
    union all select scope, ${sum("requests")} from usage_totals group by scope
    union all select 'days', ${sum("requests")} from usage_days`);
  return Object.fromEntries(rows.map(({ what, ...sums }) => [what, sums])) as Awaited<ReturnType<typeof sumsOf>>;
}
