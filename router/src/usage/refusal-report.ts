/** Reports an account's refused requests by code, with advice, for the last 24 hours or for German days. */
import type { Pool } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import { startOfGermanDay } from "../subscriptions/billing-period.ts";
import { instantText } from "../db/database.ts";
import { refusalCodes, type RefusalCode } from "./refusal-codes.ts";
import { hourMs } from "./refusal-counts.ts";

/** `from`, `to`: German days, both inclusive. If undefined, the last 24 hours are reported. */
interface RefusalWish {
  readonly from?: string;
  readonly to?: string;
  /** Only requests of this user. */
  readonly userId?: UserId;
}

/** Sorts by frequency, most frequent code first. */
export async function reportRefusals(
  pool: Pool,
  clock: Clock,
  accountId: AccountId,
  { from, to, userId }: RefusalWish = {},
) {
  const nowMs = clock.now();
  // The current hour and the 23 hours before it, because counts are kept per hour.
  const sinceMs = from === undefined ? (Math.floor(nowMs / hourMs) - 23) * hourMs : startOfGermanDay(from);
  const untilMs = to === undefined ? Infinity : startOfGermanDay(to, 1);
  const { rows } = await pool.query<{ code: RefusalCode; keyId: KeyId; count: bigint }>({
    name: "refusals-of-account",
    text: `select code, key_id as "keyId", sum(count)::bigint as count from refusals
      where account_id = $1 and hour >= $2 and hour < $3 and ($4::uuid is null or user_id = $4)
      group by code, key_id order by count desc, code, key_id`,
    values: [accountId, instantText(sinceMs), untilMs === Infinity ? "infinity" : instantText(untilMs), userId ?? null],
  });
  const codes = [...Map.groupBy(rows, ({ code }) => code)].map(([code, keys]) => ({
    code,
    ...refusalCodes[code],
    count: keys.reduce((sum, { count }) => sum + Number(count), 0),
    keys: keys.map(({ keyId, count }) => ({ keyId, count: Number(count) })),
  }));
  return {
    since: instantText(sinceMs),
    asOf: instantText(nowMs),
    total: codes.reduce((sum, { count }) => sum + count, 0),
    codes: codes.toSorted((a, b) => b.count - a.count),
  };
}
