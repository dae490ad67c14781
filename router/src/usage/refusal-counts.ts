/**
 * Counts refused requests per key and code, in memory until `flush` adds the counts to the database. Refusals are not
 * billed, so a killed router may lose its last counts.
 */
import type { Pool } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import { instantText, retryConflicts } from "../db/database.ts";
import type { RefusalCode } from "./refusal-codes.ts";

export type Refusals = ReturnType<typeof createRefusals>;

/** The key of a refused request, its user and account. */
interface RefusedKey {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
}

export const hourMs = 3_600_000;

/** `keysMax`: at most this many keys are counted between two flushes; further keys are not counted. */
export function createRefusals(pool: Pool, clock: Clock, keysMax = 20_000) {
  let counted: Counted = new Map();
  let flushing: Promise<void> = Promise.resolve();

  function count(of: RefusedKey, code: RefusalCode, times = 1): void {
    let entry = counted.get(of.keyId);
    if (!entry) {
      if (counted.size >= keysMax) return;
      counted.set(of.keyId, (entry = { of, codes: new Map() }));
    }
    entry.codes.set(code, (entry.codes.get(code) ?? 0) + times);
  }

  /** Adds the counts to the database. If it rejects, the next call adds them again. */
  function flush(): Promise<void> {
    const stored = flushing.then(store);
    flushing = stored.catch(() => {});
    return stored;
  }

  async function store(): Promise<void> {
    const taken = counted;
    if (taken.size === 0) return;
    counted = new Map();
    try {
      await retryConflicts(() => add(pool, taken, clock.now()));
    } catch (error) {
      for (const { of, codes } of taken.values()) for (const [code, times] of codes) count(of, code, times);
      throw error;
    }
  }

  return { count, flush };
}

/** Deletes counts from before `oldestMs`. */
export async function forgetRefusals(pool: Pool, oldestMs: number): Promise<void> {
  await pool.query("delete from refusals where hour < $1", [instantText(oldestMs)]);
}

type Counted = Map<KeyId, { readonly of: RefusedKey; readonly codes: Map<RefusalCode, number> }>;

/** Adds all counts to the current hour, also those from seconds before it. Rows are ordered by key against deadlocks. */
async function add(pool: Pool, counted: Counted, nowMs: number): Promise<void> {
  const rows = [...counted.values()].flatMap(({ of, codes }) =>
    Array.from(codes, ([code, times]) => ({ of, code, times })),
  );
  await pool.query({
    name: "add-refusals",
    text: `
      insert into refusals as t (account_id, key_id, user_id, hour, code, count)
      select account_id, key_id, user_id, $1, code, times
      from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::bigint[]) r (account_id, key_id, user_id, code, times)
      order by account_id, key_id, code
      on conflict (account_id, hour, key_id, code) do update set count = t.count + excluded.count`,
    values: [
      instantText(Math.floor(nowMs / hourMs) * hourMs),
      rows.map(({ of }) => of.accountId),
      rows.map(({ of }) => of.keyId),
      rows.map(({ of }) => of.userId),
      rows.map(({ code }) => code),
      rows.map(({ times }) => times),
    ],
  });
}
